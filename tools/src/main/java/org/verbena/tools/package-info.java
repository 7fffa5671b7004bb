/** The verbena command; its parts are in the packages below. */
package org.verbena.tools;
