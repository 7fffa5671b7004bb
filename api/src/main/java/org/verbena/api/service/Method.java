package org.verbena.api.service;

import java.util.Objects;

/**
 * A method of a service, as a client calls it and a server answers it: its names, and how its requests and replies are
 * sent. Both ends usually share it as a constant.
 *
 * <pre>{@code
 * Method<Order, Receipt> PLACE = Method.of("orders", "place", ORDER, RECEIPT);
 * }</pre>
 *
 * @param <Q> the type of requests
 * @param <R> the type of replies
 * @param service names of the same form as those of {@link Metadata}
 * @param name as the former
 * @param request turns requests into messages and back
 * @param reply the same for replies
 */
public record Method<Q, R>(String service, String name, Codec<Q> request, Codec<R> reply) {
    /**
     * Creates one.
     *
     * @throws IllegalArgumentException a name is not of the form of {@link Metadata}'s
     */
    public Method {
        Metadata.checkName("the name of the service", service);
        Metadata.checkName("the name of the method", name);
        Objects.requireNonNull(request, "the codec of requests is null");
        Objects.requireNonNull(reply, "the codec of replies is null");
    }

    /**
     * Returns a method.
     *
     * @param <Q> the type of requests
     * @param <R> the type of replies
     * @param service 1 to 200 of the characters {@code a} to {@code z}, {@code 0} to {@code 9}, {@code .}, {@code _}
     *     and {@code -}
     * @param name the same
     * @param request turns requests into messages and back
     * @param reply the same for replies
     * @return a method that equals others of the same names and codecs
     * @throws IllegalArgumentException a name has other characters
     */
    public static <Q, R> Method<Q, R> of(String service, String name, Codec<Q> request, Codec<R> reply) {
        return new Method<>(service, name, request, reply);
    }

    /** Both names. */
    @Override
    public String toString() {
        return service + '/' + name;
    }
}
