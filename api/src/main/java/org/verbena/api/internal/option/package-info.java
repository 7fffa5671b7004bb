/**
 * Tables of options, which the configs of channels are made of. Uses nothing else of this module.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.api.internal.option;
