package org.verbena.transport.soft;

import org.jspecify.annotations.Nullable;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.EndpointOptions;

/**
 * Negotiates the startup phase of MPA: read depths, CRC, which end reports that it is ready and how, and the features
 * beyond plain iWARP. It turns frames into frames and terms, without state and I/O.
 *
 * <p>Source: RFC 5044, 7.1; RFC 6581, 6 and 9
 */
final class MpaNegotiation {
    /** The most reads and atomics in one direction. */
    static final int MAX_READ_DEPTH = 128;

    private MpaNegotiation() {}

    /**
     * The terms of the connecting side after a positive reply.
     *
     * @param outboundReads reads and atomics out at a time
     * @param inboundReads reads and atomics of the peer at a time
     * @param crc whether FPDUs have CRCs
     * @param ready the message to send before anything else; null for none
     * @param peerFeatures of {@link PeerFeatures}
     * @param privateData of the peer's user
     * @param refusal why it cannot be met; null if it can
     */
    @SuppressWarnings("ArrayRecordComponent")
    record Terms(
            int outboundReads,
            int inboundReads,
            boolean crc,
            FpduSender.@Nullable ReadyMessage ready,
            int peerFeatures,
            byte[] privateData,
            @Nullable TerminateReason refusal) {}

    /**
     * The reply and the terms of the accepting side.
     *
     * @param frame the reply
     * @param outboundReads reads and atomics out at a time
     * @param inboundReads reads and atomics of the peer at a time
     * @param peerToPeer whether the peer sends a ready-to-receive message before anything of its user
     */
    record Answer(MpaFrame frame, int outboundReads, int inboundReads, boolean peerToPeer) {}

    /**
     * Refuses what iWARP does not have.
     *
     * @param options of the endpoint
     * @throws ConnectionException it asks for that
     */
    static void checkTransport(EndpointOptions options) {
        if (options.minRnrTimerMicros() != EndpointOptions.DEVICE_DEFAULT) {
            throw new ConnectionException("minRnrTimerMicros " + options.minRnrTimerMicros()
                    + " is for InfiniBand and RoCE: the soft provider is iWARP, which never repeats a send");
        }
        if (options.ackTimeoutMicros() != EndpointOptions.DEVICE_DEFAULT) {
            throw new ConnectionException("ackTimeoutMicros " + options.ackTimeoutMicros()
                    + " is for InfiniBand and RoCE: the soft provider is iWARP, where TCP repeats what is lost");
        }
    }

    /**
     * Refuses private data for which MPA has no room beside what this provider adds.
     *
     * @param options of the endpoint
     * @param reply whether it is for the reply, in which the provider may add its token
     * @throws ConnectionException there is too much of it
     */
    static void checkPrivateData(EndpointOptions options, boolean reply) {
        int limit = MpaFrame.MAX_PRIVATE_DATA_BYTES - EnhancedSetup.BYTES - (reply ? PeerFeatures.TOKEN_BYTES : 0);
        int asked = options.privateData().length;
        if (asked > limit) {
            throw new ConnectionException("the soft provider carries at most " + limit + " bytes of private data in "
                    + (reply ? "the answer to a connect request" : "a connect request") + ", not " + asked);
        }
    }

    /**
     * The connecting side's request.
     *
     * @param soft of the provider
     * @param options of the endpoint
     * @return the frame
     */
    static MpaFrame request(SoftOptions soft, EndpointOptions options) {
        boolean enhanced = soft.mpaRevision() == 2;
        boolean peerToPeer = enhanced && soft.peerToPeer();
        int depth = options.readDepth();
        EnhancedSetup setup =
                enhanced ? new EnhancedSetup(depth, depth, peerToPeer, peerToPeer, peerToPeer, peerToPeer) : null;
        return new MpaFrame(false, false, soft.crc(), false, soft.mpaRevision(), setup, options.privateData());
    }

    /**
     * The connecting side reads a positive reply.
     *
     * @param soft of the provider
     * @param options of the endpoint
     * @param reply without markers
     * @return what is agreed
     */
    static Terms accepted(SoftOptions soft, EndpointOptions options, MpaFrame reply) {
        EnhancedSetup setup = reply.setup();
        int outbound = options.readDepth();
        int inbound = options.readDepth();
        FpduSender.ReadyMessage ready = null;
        TerminateReason refusal = null;
        if (setup != null && soft.mpaRevision() == 2) {
            if (setup.inboundReads() != EnhancedSetup.NOT_NEGOTIATED) {
                outbound = Math.min(outbound, setup.inboundReads());
            }
            if (setup.outboundReads() != EnhancedSetup.NOT_NEGOTIATED) {
                inbound = Math.max(inbound, setup.outboundReads());
                refusal = inbound > MAX_READ_DEPTH ? TerminateReason.MPA_INSUFFICIENT_IRD : null;
            }
            if (setup.peerToPeer() && soft.peerToPeer()) {
                ready = readyMessage(setup);
                refusal = ready == null ? TerminateReason.MPA_NO_MATCHING_RTR : refusal;
            }
        }
        byte[] privateData = reply.privateData();
        int features = ready == FpduSender.ReadyMessage.WRITE ? PeerFeatures.shared(privateData) : 0;
        if (features != 0) {
            privateData = PeerFeatures.withoutToken(privateData);
        }
        boolean crc = reply.crc() || soft.crc();
        return new Terms(outbound, Math.min(inbound, MAX_READ_DEPTH), crc, ready, features, privateData, refusal);
    }

    private static FpduSender.@Nullable ReadyMessage readyMessage(EnhancedSetup setup) {
        if (setup.writeReady()) {
            return FpduSender.ReadyMessage.WRITE;
        }
        if (setup.readReady()) {
            return FpduSender.ReadyMessage.READ;
        }
        return setup.sendReady() ? FpduSender.ReadyMessage.SEND : null;
    }

    /**
     * The accepting side accepts.
     *
     * @param soft of the provider
     * @param options of the endpoint
     * @param request of the peer
     * @return what it replies
     */
    static Answer answer(SoftOptions soft, EndpointOptions options, MpaFrame request) {
        EnhancedSetup asked = request.setup();
        int outbound = options.readDepth();
        int inbound = options.readDepth();
        EnhancedSetup setup = null;
        byte[] privateData = options.privateData();
        boolean peerToPeer = false;
        if (asked != null) {
            int ird = EnhancedSetup.NOT_NEGOTIATED;
            int ord = EnhancedSetup.NOT_NEGOTIATED;
            if (asked.outboundReads() != EnhancedSetup.NOT_NEGOTIATED) {
                inbound = Math.min(inbound, asked.outboundReads());
                ird = inbound;
            }
            if (asked.inboundReads() != EnhancedSetup.NOT_NEGOTIATED) {
                outbound = Math.min(outbound, asked.inboundReads());
                ord = outbound;
            }
            peerToPeer = asked.peerToPeer();
            boolean read = peerToPeer && !asked.writeReady() && asked.readReady();
            if (read) {
                // The ready-to-receive read needs a place too.
                inbound = Math.max(1, inbound);
                ird = ird == EnhancedSetup.NOT_NEGOTIATED ? ird : inbound;
            }
            setup = new EnhancedSetup(ird, ord, peerToPeer, false, peerToPeer && !read, read);
            if (asked.sendReady() && asked.writeReady() && asked.readReady()) {
                privateData = PeerFeatures.withToken(privateData);
            }
        }
        boolean crc = request.crc() || soft.crc();
        MpaFrame frame = new MpaFrame(true, false, crc, false, request.revision(), setup, privateData);
        return new Answer(frame, outbound, inbound, peerToPeer);
    }
}
