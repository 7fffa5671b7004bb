/** Builds the project's site. */
@NullMarked
package org.verbena.site;

import org.jspecify.annotations.NullMarked;
