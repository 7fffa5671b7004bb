package org.verbena.tools.interop.pingpong;

import org.verbena.verbs.device.Mtu;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Option;
import picocli.CommandLine.TypeConversionException;

/** The MTU of a connection, for commands to mix in. */
final class MtuOption {
    @Option(
            names = {"-m", "--mtu"},
            defaultValue = "1024",
            converter = Converter.class,
            description = "Path MTU: 256, 512, 1024, 2048 or 4096 (${DEFAULT-VALUE}).")
    @SuppressWarnings("NullAway.Init") // picocli sets it
    Mtu mtu;

    /** An MTU by its bytes. */
    static final class Converter implements ITypeConverter<Mtu> {
        @Override
        public Mtu convert(String text) {
            try {
                return Mtu.ofBytes(Integer.parseInt(text));
            } catch (IllegalArgumentException other) {
                throw new TypeConversionException("'" + text + "' is not an MTU: 256, 512, 1024, 2048 or 4096");
            }
        }
    }
}
