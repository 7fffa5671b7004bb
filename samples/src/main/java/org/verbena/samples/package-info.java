/** samples. */
package org.verbena.samples;
