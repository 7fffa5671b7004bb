package org.verbena.api.internal.channel;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.Framing;

class RejectionTest {
    private static final byte[] MAGIC = {'V', 'R', 'B', 'N', (byte) 0xff};

    private static ConnectionException.Rejected rejected(byte[] privateData) {
        return new ConnectionException.Rejected("connecting to host:7471: rejected", privateData);
    }

    /** As a listener of Verbena rejects. */
    private static byte[] reason(String reason) {
        byte[] text = reason.getBytes(UTF_8);
        byte[] data = Arrays.copyOf(MAGIC, MAGIC.length + 1 + text.length + 7); // providers pad
        data[MAGIC.length] = (byte) text.length;
        System.arraycopy(text, 0, data, MAGIC.length + 1, text.length);
        return data;
    }

    private static String explained(byte[] privateData, Framing framing) {
        ConnectionException.Rejected rejected = rejected(privateData);
        ConnectionException explained = Rejection.explain(rejected, framing);
        assertThat(explained).isInstanceOf(ConnectionException.Rejected.class).hasCause(rejected);
        assertThat(((ConnectionException.Rejected) explained).privateData()).isEqualTo(privateData);
        return explained.getMessage();
    }

    @Test
    void saysWhichFramingToUse() {
        assertThat(explained(reason("framing MESSAGE is not STREAM"), Framing.MESSAGE))
                .startsWith("connecting to host:7471: rejected: framing MESSAGE is not STREAM")
                .contains(
                        "the server speaks STREAM, this channel MESSAGE: use RdmaSocketChannel, or change the server");
        assertThat(explained(reason("framing STREAM is not MESSAGE"), Framing.STREAM))
                .contains("use RdmaChannel, with RdmaChannelOption.FRAMING MESSAGE");
        assertThat(explained(reason("this end uses framing RAW, the other MESSAGE"), Framing.MESSAGE))
                .contains("use RdmaChannel with RdmaChannelOption.FRAMING RAW");
        assertThat(explained(reason("not a peer with framing MESSAGE"), Framing.RAW))
                .contains("the server speaks MESSAGE, this channel RAW");
    }

    @Test
    void saysWhichVersionsDiffer() {
        assertThat(explained(reason("protocol 2-3 is not 1"), Framing.MESSAGE))
                .contains("this end speaks versions 2-3 of the protocol, the server 1: use the same release");
    }

    @Test
    void showsWhatAListenerSays() {
        assertThat(explained(reason("the server is full"), Framing.MESSAGE)).endsWith("rejected: the server is full");
        assertThat(explained("come back tomorrow\0\0\0".getBytes(UTF_8), Framing.RAW))
                .endsWith("it says \"come back tomorrow\"");
    }

    @Test
    void explainsOnce() {
        ConnectionException.Rejected explained = (ConnectionException.Rejected)
                Rejection.explain(rejected(reason("the server is full")), Framing.MESSAGE);
        assertThat(Rejection.explain(explained, Framing.MESSAGE)).isSameAs(explained);
    }

    /** Whatever words the exception has of its own. */
    @Test
    void showsWhatAListenerSaysInTheWordsOfTheException() {
        assertThat(explained("rejected".getBytes(UTF_8), Framing.RAW)).endsWith("rejected: it says \"rejected\"");
    }

    @Test
    void leavesBinaryPrivateDataAlone() {
        for (byte[] data : new byte[][] {{}, {0, 0, 0}, {1, 2, 3}, {'a', 'b', 0, 'c'}, {(byte) 0xff, 'a'}}) {
            ConnectionException.Rejected rejected = rejected(data);
            assertThat(Rejection.explain(rejected, Framing.MESSAGE)).isSameAs(rejected);
        }
    }
}
