/** What a run of all modules' tests left out, told at its end. */
@NullMarked
package org.verbena.it.skips;

import org.jspecify.annotations.NullMarked;
