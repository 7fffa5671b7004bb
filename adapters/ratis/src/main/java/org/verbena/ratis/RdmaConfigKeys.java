package org.verbena.ratis;

import java.util.Objects;
import java.util.function.Consumer;
import org.apache.ratis.conf.Parameters;
import org.apache.ratis.conf.RaftProperties;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaServer;

/** The configuration of Ratis over Verbena. */
public final class RdmaConfigKeys {
    private static final String PREFIX = "raft.verbena.";

    private RdmaConfigKeys() {}

    /** A parameter that is a consumer of a builder. */
    private static final class Customizer<B> {
        private final String key;

        Customizer(String key) {
            this.key = PREFIX + key;
        }

        void set(Parameters parameters, Consumer<? super B> customizer) {
            parameters.put(key, Objects.requireNonNull(customizer, "the customizer is null"), Consumer.class);
        }

        @SuppressWarnings("unchecked") // what set has put
        Consumer<? super B> get(@Nullable Parameters parameters) {
            Consumer<? super B> set = parameters == null ? null : parameters.get(key, Consumer.class);
            return set == null ? builder -> {} : set;
        }
    }

    /** Where a server listens, and how. */
    public static final class Server {
        /** The property of the name or address of this host. */
        public static final String HOST_KEY = PREFIX + "host";

        /** All addresses of this host. */
        public static final String HOST_DEFAULT = "0.0.0.0";

        /** The property of the port. */
        public static final String PORT_KEY = PREFIX + "port";

        /** Any port that is free: of use only if the group is made when the server has begun. */
        public static final int PORT_DEFAULT = 0;

        private static final Customizer<RdmaServer.Builder> CUSTOMIZER = new Customizer<>("server.customizer");

        private Server() {}

        /**
         * Returns where the server listens.
         *
         * @param properties of the server
         * @return a name or address of this host
         */
        public static String host(RaftProperties properties) {
            return properties.get(HOST_KEY, HOST_DEFAULT);
        }

        /**
         * Sets where the server listens.
         *
         * @param properties of the server
         * @param host a name or address of this host
         */
        public static void setHost(RaftProperties properties, String host) {
            properties.set(HOST_KEY, host);
        }

        /**
         * Returns the port on which the server listens.
         *
         * @param properties of the server
         * @return 0 to 65535
         */
        public static int port(RaftProperties properties) {
            return properties.getInt(PORT_KEY, PORT_DEFAULT);
        }

        /**
         * Sets the port on which the server listens: that of its address in the group.
         *
         * @param properties of the server
         * @param port 1 to 65535, or 0 for any that is free
         */
        public static void setPort(RaftProperties properties, int port) {
            properties.setInt(PORT_KEY, port);
        }

        /**
         * Sets what is done to the builder of the server before it listens: to choose its provider, event loops, keys
         * or limits. How handlers run must stay as it is.
         *
         * @param parameters of {@code RaftServer.newBuilder()}
         * @param customizer called once for each start of a server
         */
        public static void setCustomizer(Parameters parameters, Consumer<? super RdmaServer.Builder> customizer) {
            CUSTOMIZER.set(parameters, customizer);
        }

        static Consumer<? super RdmaServer.Builder> customizer(@Nullable Parameters parameters) {
            return CUSTOMIZER.get(parameters);
        }
    }

    /** How clients connect, and servers to each other. */
    public static final class Client {
        private static final Customizer<RdmaClient.Builder> CUSTOMIZER = new Customizer<>("client.customizer");

        private Client() {}

        /**
         * Sets what is done to the builder of each connection before it connects: to choose its provider, event loops
         * or keys. It must make no connection again that is lost, which Ratis does.
         *
         * @param parameters of {@code RaftClient.newBuilder()}, and of {@code RaftServer.newBuilder()} for the server's
         *     connections to others
         * @param customizer called for each connection, on any thread; must not block
         */
        public static void setCustomizer(Parameters parameters, Consumer<? super RdmaClient.Builder> customizer) {
            CUSTOMIZER.set(parameters, customizer);
        }

        static Consumer<? super RdmaClient.Builder> customizer(@Nullable Parameters parameters) {
            return CUSTOMIZER.get(parameters);
        }
    }
}
