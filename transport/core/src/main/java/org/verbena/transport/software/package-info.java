/**
 * Queues, memory and keys for providers that are themselves the device: what a queue pair holds, and a protection
 * domain that decides by keys what a peer may access. Exported only to this library's providers.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.transport.software;
