package org.verbena.samples.grpc;

import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

/**
 * The service of the gRPC samples. Its messages are text, so that it needs no code from a protocol compiler; with one,
 * nothing else would differ.
 */
final class Greeter {
    static final String SERVICE = "org.verbena.samples.Greeter";

    /** A name in, a greeting out. */
    static final MethodDescriptor<String, String> GREET = method(MethodType.UNARY, "Greet");

    /** Every line is answered, in one stream each way. */
    static final MethodDescriptor<String, String> CHAT = method(MethodType.BIDI_STREAMING, "Chat");

    private Greeter() {}

    private static MethodDescriptor<String, String> method(MethodType type, String name) {
        return MethodDescriptor.<String, String>newBuilder()
                .setType(type)
                .setFullMethodName(MethodDescriptor.generateFullMethodName(SERVICE, name))
                .setRequestMarshaller(new Text())
                .setResponseMarshaller(new Text())
                .build();
    }

    private static final class Text implements MethodDescriptor.Marshaller<String> {
        @Override
        public InputStream stream(String value) {
            return new ByteArrayInputStream(value.getBytes(StandardCharsets.UTF_8));
        }

        @Override
        public String parse(InputStream stream) {
            try {
                return new String(stream.readAllBytes(), StandardCharsets.UTF_8);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }
}
