/**
 * The choice of a provider: {@link org.verbena.transport.provider.ProviderChoice} finds what is installed and reports
 * why something does not work here; {@link org.verbena.transport.provider.PinnedThreadFactory} chooses the processors
 * of its loops. It uses the provider SPI, {@code org.verbena.transport.spi}.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.transport.provider;
