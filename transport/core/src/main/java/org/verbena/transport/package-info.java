/**
 * What every user of Verbena may name: the exceptions to catch, memory that is registered and the tokens for it, keys,
 * framing, and the options, capabilities and figures of connections and loops. Begin with {@link RdmaException} and
 * {@link MemoryDomain}. The package uses no other package of Verbena; the provider SPI, the protocol and the channels
 * are built on it.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.transport;
