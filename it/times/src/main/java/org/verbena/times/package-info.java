/** What the tests of a build take. */
@NullMarked
package org.verbena.times;

import org.jspecify.annotations.NullMarked;
