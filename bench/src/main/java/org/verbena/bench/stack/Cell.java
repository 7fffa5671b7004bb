package org.verbena.bench.stack;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A layer on a provider.
 *
 * @param name of the layer
 * @param provider what is below it
 */
record Cell(String name, String provider) {
    /** Below the bindings, and below the provider verbs here: the library without a device. */
    static final String STUB = "stub";

    /** The providers that a program can choose; one that is not there is left out. */
    static final List<String> PROVIDERS = List.of("verbs", "shm", "soft");

    /** All, from the bottom. */
    static List<Cell> all() {
        List<Cell> cells = new ArrayList<>();
        cells.add(new Cell("c", STUB));
        cells.add(new Cell("ffm", STUB));
        cells.add(new Cell("protocol", ProtocolLayer.MEMORY));
        for (String provider : PROVIDERS) {
            for (String name : List.of("endpoint", "protocol", "channel", "short", "stream", "grpc")) {
                cells.add(new Cell(name, provider));
            }
        }
        return cells;
    }

    /** What it is on; null for the lowest. */
    @Nullable Cell base() {
        return switch (name) {
            case "ffm" -> new Cell("c", STUB);
            case "endpoint" -> provider.equals("verbs") ? new Cell("ffm", STUB) : null;
            case "protocol" -> provider.equals(ProtocolLayer.MEMORY) ? null : new Cell("endpoint", provider);
            case "channel", "stream" -> new Cell("protocol", provider);
            case "short" -> new Cell("channel", provider);
            case "grpc" -> new Cell("stream", provider);
            default -> null;
        };
    }

    /** What it is, for people. */
    String title() {
        return switch (name) {
            case "c" -> "post and poll in C";
            case "ffm" -> "post and poll in Java";
            case "endpoint" -> "endpoint";
            case "protocol" -> provider.equals(ProtocolLayer.MEMORY) ? "protocol in memory" : "protocol";
            case "channel" -> "RdmaChannel";
            case "short" -> "RdmaClient, RdmaServer";
            case "stream" -> "RdmaSocketChannel";
            default -> "gRPC";
        };
    }

    Layer open() throws Exception {
        Layer layer = switch (name) {
            case "c" -> new NativeQueues.InC();
            case "ffm" -> new FfmLayer();
            case "endpoint" -> new EndpointLayer(provider);
            case "protocol" -> new ProtocolLayer(provider);
            case "channel" -> new ChannelLayer(provider, false);
            case "stream" -> new ChannelLayer(provider, true);
            case "short" -> new ShortFormLayer(provider);
            case "grpc" -> new GrpcLayer(provider);
            default -> throw new IllegalArgumentException("no layer " + name);
        };
        layer.open();
        return layer;
    }

    @Override
    public String toString() {
        return name + "/" + provider;
    }
}
