package org.verbena.samples.command;

import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** A TCP or RDMA port; with 0 a server takes any free one. */
public final class PortNumber implements ITypeConverter<Integer> {
    private static final int GREATEST = 65_535;

    @Override
    public Integer convert(String text) {
        int port;
        try {
            port = Integer.parseInt(text);
        } catch (NumberFormatException malformed) {
            port = -1;
        }
        if (port < 0 || port > GREATEST) {
            throw new TypeConversionException("'" + text + "' is not a port from 0 to " + GREATEST);
        }
        return port;
    }
}
