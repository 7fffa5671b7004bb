/**
 * The registered buffers of each device, shared by all channels, and the memory of servers for their clients. Uses
 * nothing else of this module.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.api.internal.memory;
