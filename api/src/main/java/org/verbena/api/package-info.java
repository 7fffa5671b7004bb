/** api. */
package org.verbena.api;
