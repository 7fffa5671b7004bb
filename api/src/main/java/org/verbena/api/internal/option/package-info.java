/** Tables of options, of which the configs of channels are made. Uses nothing else of this module. */
@org.jspecify.annotations.NullMarked
package org.verbena.api.internal.option;
