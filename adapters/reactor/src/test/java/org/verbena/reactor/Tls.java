package org.verbena.reactor;

import io.netty.handler.codec.http2.Http2SecurityUtil;
import io.netty.handler.ssl.ApplicationProtocolConfig;
import io.netty.handler.ssl.ApplicationProtocolNames;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslProvider;
import io.netty.handler.ssl.SupportedCipherSuiteFilter;
import java.io.IOException;
import java.io.InputStream;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.TrustManagerFactory;

/** A certificate for localhost that the server shows and the client trusts, for HTTP/2. */
final class Tls {
    /** Whose certificate it is. */
    static final String NAME = "localhost";

    private static final String PASSWORD = "password";

    private Tls() {}

    static SslContext server() {
        try {
            KeyManagerFactory identity = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
            identity.init(keyStore(), PASSWORD.toCharArray());
            return forHttp2(SslContextBuilder.forServer(identity));
        } catch (GeneralSecurityException | IOException e) {
            throw new AssertionError(e);
        }
    }

    static SslContext client() {
        try {
            TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            trust.init(keyStore());
            return forHttp2(SslContextBuilder.forClient().trustManager(trust));
        } catch (GeneralSecurityException | IOException e) {
            throw new AssertionError(e);
        }
    }

    private static SslContext forHttp2(SslContextBuilder builder) throws IOException {
        return builder.sslProvider(SslProvider.JDK)
                .ciphers(Http2SecurityUtil.CIPHERS, SupportedCipherSuiteFilter.INSTANCE)
                .applicationProtocolConfig(new ApplicationProtocolConfig(
                        ApplicationProtocolConfig.Protocol.ALPN,
                        ApplicationProtocolConfig.SelectorFailureBehavior.NO_ADVERTISE,
                        ApplicationProtocolConfig.SelectedListenerFailureBehavior.ACCEPT,
                        ApplicationProtocolNames.HTTP_2))
                .build();
    }

    private static KeyStore keyStore() throws GeneralSecurityException, IOException {
        KeyStore keys = KeyStore.getInstance("PKCS12");
        try (InputStream in = Tls.class.getResourceAsStream("localhost.p12")) {
            keys.load(in, PASSWORD.toCharArray());
        }
        return keys;
    }
}
