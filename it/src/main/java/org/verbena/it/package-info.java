/** Tests of all modules together, on the host and in the lab's guest. They are all under {@code src/test}. */
@NullMarked
package org.verbena.it;

import org.jspecify.annotations.NullMarked;
