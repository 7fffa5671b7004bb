/** Programs to copy from, a package each; {@link org.verbena.samples.Samples} runs them by name. */
package org.verbena.samples;
