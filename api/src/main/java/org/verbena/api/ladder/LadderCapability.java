package org.verbena.api.ladder;

import org.verbena.transport.EndpointCapabilities;

/**
 * What a client may need of the connection that a ladder finds ({@link LadderOptions#needs}). Plain TCP has none of
 * them.
 */
public enum LadderCapability {
    /** {@link EndpointCapabilities#atomics()}. */
    ATOMICS("atomics"),
    /** {@link EndpointCapabilities#immediateData()}. */
    IMMEDIATE_DATA("immediate data"),
    /** {@link EndpointCapabilities#sendWithInvalidate()}. */
    SEND_WITH_INVALIDATE("send with invalidate"),
    /** {@link EndpointCapabilities#connectionMemory()}. */
    CONNECTION_MEMORY("memory for one connection only");

    private final String text;

    LadderCapability(String text) {
        this.text = text;
    }

    /**
     * Names the capability as messages do.
     *
     * @return in lower case
     */
    public String description() {
        return text;
    }

    /**
     * Returns whether a connection has it.
     *
     * @param capabilities of the connection
     * @return true if it has
     */
    public boolean isAmong(EndpointCapabilities capabilities) {
        return switch (this) {
            case ATOMICS -> capabilities.atomics();
            case IMMEDIATE_DATA -> capabilities.immediateData();
            case SEND_WITH_INVALIDATE -> capabilities.sendWithInvalidate();
            case CONNECTION_MEMORY -> capabilities.connectionMemory();
        };
    }
}
