/** Verbena in JVMs of its own: other flags, modules, libraries and places than those that the build has. */
@NullMarked
package org.verbena.it.environment;

import org.jspecify.annotations.NullMarked;
