package org.verbena.api.internal.channel;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.Framing;
import org.verbena.transport.protocol.PrivateData;

/** Adds to a rejection what the connecting program has to change. */
public final class Rejection {
    /** The reasons with which a server rejects a peer that uses another framing. */
    private static final Pattern OTHER_FRAMING = Pattern.compile(
            "framing \\w+ is not (\\w+)|not a peer with framing (\\w+)|this end uses framing (\\w+), the other \\w+");

    private static final Pattern OTHER_VERSION = Pattern.compile("protocol (\\d+-\\d+) is not (\\d+)");

    private Rejection() {}

    /**
     * Adds the server's reason and what to do about it.
     *
     * @param rejected the provider's exception
     * @param framing of the channel that connected
     * @return the exception to report, with the provider's as its cause; the provider's own if the server sent no text
     */
    public static ConnectionException explain(ConnectionException.Rejected rejected, Framing framing) {
        if (rejected.getCause() instanceof ConnectionException.Rejected) {
            return rejected; // already explained by the rung under this channel
        }
        byte[] data = rejected.privateData();
        String reason = PrivateData.reason(data);
        String said;
        if (reason != null) {
            said = reason + remedy(reason, framing);
        } else {
            String text = text(data);
            if (text == null) {
                return rejected;
            }
            said = "it says \"" + text + "\"";
        }
        ConnectionException.Rejected explained =
                new ConnectionException.Rejected(rejected.getMessage() + ": " + said, data);
        explained.initCause(rejected);
        return explained;
    }

    private static String remedy(String reason, Framing framing) {
        Matcher otherFraming = OTHER_FRAMING.matcher(reason);
        if (otherFraming.matches()) {
            String server = otherFraming.group(1) != null
                    ? otherFraming.group(1)
                    : otherFraming.group(2) != null ? otherFraming.group(2) : otherFraming.group(3);
            return " (the server speaks " + server + ", this channel " + framing + ": use "
                    + switch (server) {
                        case "STREAM" -> "RdmaSocketChannel";
                        case "RAW" -> "RdmaChannel with RdmaChannelOption.FRAMING RAW";
                        default -> "RdmaChannel, with RdmaChannelOption.FRAMING " + server;
                    }
                    + ", or change the server)";
        }
        Matcher otherVersion = OTHER_VERSION.matcher(reason);
        if (otherVersion.matches()) {
            return " (this end speaks versions " + otherVersion.group(1) + " of the protocol, the server "
                    + otherVersion.group(2) + ": use the same release of Verbena at both ends)";
        }
        return reason.equals(PrivateData.KEY_REQUIRED)
                ? " (set RdmaChannelOption.PRE_SHARED_KEYS to a key that the server has)"
                : "";
    }

    /** Private data as text, without its zero padding; null if it is not text. */
    private static @Nullable String text(byte[] data) {
        StringBuilder text = new StringBuilder(data.length);
        int end = data.length;
        while (end > 0 && data[end - 1] == 0) {
            end--;
        }
        for (int i = 0; i < end; i++) {
            if (data[i] < ' ' || data[i] > '~') {
                return null;
            }
            text.append((char) data[i]);
        }
        return end == 0 ? null : text.toString();
    }
}
