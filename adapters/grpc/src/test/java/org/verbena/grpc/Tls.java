package org.verbena.grpc;

import io.grpc.netty.GrpcSslContexts;
import io.netty.handler.ssl.ClientAuth;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslProvider;
import java.security.KeyStore;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.TrustManagerFactory;

/** A certificate for localhost that both ends show and trust. */
public final class Tls {
    /** Whose certificate it is. */
    public static final String NAME = "localhost";

    private static final String PASSWORD = "password";

    private Tls() {}

    private static KeyStore keyStore() throws Exception {
        KeyStore keys = KeyStore.getInstance("PKCS12");
        try (var in = Tls.class.getResourceAsStream("localhost.p12")) {
            keys.load(in, PASSWORD.toCharArray());
        }
        return keys;
    }

    private static KeyManagerFactory identity() throws Exception {
        KeyManagerFactory identity = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        identity.init(keyStore(), PASSWORD.toCharArray());
        return identity;
    }

    private static TrustManagerFactory trust() throws Exception {
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(keyStore());
        return trust;
    }

    /** For servers, which ask the client for its certificate. */
    public static SslContext server() {
        try {
            return GrpcSslContexts.configure(SslContextBuilder.forServer(identity()), SslProvider.JDK)
                    .trustManager(trust())
                    .clientAuth(ClientAuth.REQUIRE)
                    .build();
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    /** For clients, which call the server {@link #NAME}. */
    public static SslContext client() {
        try {
            return GrpcSslContexts.configure(SslContextBuilder.forClient(), SslProvider.JDK)
                    .keyManager(identity())
                    .trustManager(trust())
                    .build();
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }
}
