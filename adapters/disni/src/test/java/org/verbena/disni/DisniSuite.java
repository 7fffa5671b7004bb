package org.verbena.disni;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.ibm.darpc.DaRPCClientEndpoint;
import com.ibm.darpc.DaRPCClientGroup;
import com.ibm.darpc.DaRPCFuture;
import com.ibm.darpc.DaRPCServerEndpoint;
import com.ibm.darpc.DaRPCServerGroup;
import com.ibm.darpc.DaRPCStream;
import com.ibm.darpc.examples.protocol.RdmaRpcProtocol;
import com.ibm.darpc.examples.protocol.RdmaRpcRequest;
import com.ibm.darpc.examples.protocol.RdmaRpcResponse;
import com.ibm.darpc.examples.server.RdmaRpcService;
import com.ibm.disni.RdmaActiveEndpointGroup;
import com.ibm.disni.RdmaServerEndpoint;
import com.ibm.disni.verbs.IbvCQ;
import com.ibm.disni.verbs.IbvCompChannel;
import com.ibm.disni.verbs.IbvContext;
import com.ibm.disni.verbs.IbvMr;
import com.ibm.disni.verbs.IbvPd;
import com.ibm.disni.verbs.IbvQP;
import com.ibm.disni.verbs.IbvQPInitAttr;
import com.ibm.disni.verbs.IbvRecvWR;
import com.ibm.disni.verbs.IbvSendWR;
import com.ibm.disni.verbs.IbvWC;
import com.ibm.disni.verbs.RdmaCm;
import com.ibm.disni.verbs.RdmaCmEvent;
import com.ibm.disni.verbs.RdmaCmEvent.EventType;
import com.ibm.disni.verbs.RdmaCmId;
import com.ibm.disni.verbs.RdmaConnParam;
import com.ibm.disni.verbs.RdmaEventChannel;
import com.ibm.disni.verbs.SVCPollCq;
import com.ibm.disni.verbs.SVCPostSend;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.LinkedList;
import java.util.List;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.transport.spi.Patience;

/**
 * DiSNI and DaRPC as Maven Central has them, without {@code libdisni.so}: what DiSNI's examples do, which are not there
 * (ReadServer and its client, SendRecvServer, VerbsServer), and DaRPC's own example.
 */
@Timeout(value = 240, threadMode = Timeout.ThreadMode.SEPARATE_THREAD) // DiSNI's calls do not see an interrupt
public abstract class DisniSuite {
    /** How long DiSNI's threads wait before they look whether they shall end. */
    private static final int TURN_MILLIS = 100;

    private static final int CONNECT_MILLIS = 10_000;

    /** In a lab's guest the other end may be slow, but less than the 100 s after which RoCE's CM gives up an answer. */
    private static final int EVENT_MILLIS = (int) Patience.LIMIT.toMillis();

    private static final int SUCCESS = 0;

    /** An address of the device. */
    protected abstract String host();

    /** Two ends on DiSNI's endpoints. */
    private final class Pair implements AutoCloseable {
        private final RdmaActiveEndpointGroup<ActiveEndpoint> servers = group();
        private final RdmaActiveEndpointGroup<ActiveEndpoint> clients = group();
        private final RdmaServerEndpoint<ActiveEndpoint> listener = servers.createServerEndpoint();
        final ActiveEndpoint server;
        final ActiveEndpoint client;

        Pair(int port) throws Exception {
            InetSocketAddress address = new InetSocketAddress(host(), port);
            listener.bind(address, 10);
            FutureTask<ActiveEndpoint> accepted = new FutureTask<>(listener::accept);
            Thread.ofPlatform().daemon().start(accepted);
            client = clients.createEndpoint();
            client.connect(address, CONNECT_MILLIS);
            server = Patience.await("accepted", accepted);
            assertThat(client.getDstAddr()).isEqualTo(address);
            assertThat(server.getSrcAddr()).isEqualTo(address);
        }

        @Override
        public void close() throws IOException {
            try {
                client.close();
                server.close();
                listener.close();
                client.release();
                server.release();
                clients.close();
                servers.close();
            } catch (InterruptedException nobodyInterrupts) {
                throw new AssertionError(nobodyInterrupts);
            }
        }
    }

    private static RdmaActiveEndpointGroup<ActiveEndpoint> group() throws IOException {
        RdmaActiveEndpointGroup<ActiveEndpoint> group = new RdmaActiveEndpointGroup<>(TURN_MILLIS, false, 16, 4, 64);
        group.init((id, serverSide) -> new ActiveEndpoint(group, id, serverSide));
        return group;
    }

    private static void expect(ActiveEndpoint end, long id, int opcode) {
        ActiveEndpoint.Completion completion = Patience.take("the completion of " + id, end.completions);
        assertThat(completion.id()).isEqualTo(id);
        assertThat(completion.status()).isEqualTo(SUCCESS);
        assertThat(completion.opcode()).isEqualTo(opcode);
    }

    private static void put(ByteBuffer buffer, int at, String text) {
        buffer.put(at, text.getBytes(StandardCharsets.UTF_8));
    }

    private static String get(ByteBuffer buffer, int at, int bytes) {
        byte[] text = new byte[bytes];
        buffer.get(at, text);
        return new String(text, StandardCharsets.UTF_8);
    }

    private static int opcode(IbvWC.IbvWcOpcode opcode) {
        return opcode.getOpcode();
    }

    /** As SendRecvServer and SendRecvClient, which change the prepared work request before they post it. */
    @Test
    public void endpointsExchangeMessages() throws Exception {
        try (Pair pair = new Pair(7481)) {
            put(pair.client.sent, 0, "hello from the client");
            SVCPostSend prepared = pair.client.prepare(
                    ActiveEndpoint.send(2, IbvSendWR.IBV_WR_SEND, ActiveEndpoint.element(pair.client.sentMr, 0, 21)));
            prepared.getWrMod(0).setWr_id(4444);
            prepared.execute().free();
            expect(pair.client, 4444, opcode(IbvWC.IbvWcOpcode.IBV_WC_SEND));
            ActiveEndpoint.Completion received = Patience.take("the message", pair.server.completions);
            assertThat(received.id()).isEqualTo(1);
            assertThat(received.bytes()).isEqualTo(21);
            assertThat(get(pair.server.received, 0, 21)).isEqualTo("hello from the client");
            put(pair.server.sent, 0, "hello");
            put(pair.server.sent, 100, " back");
            pair.server
                    .prepare(ActiveEndpoint.send(
                            3,
                            IbvSendWR.IBV_WR_SEND,
                            ActiveEndpoint.element(pair.server.sentMr, 0, 5),
                            ActiveEndpoint.element(pair.server.sentMr, 100, 5)))
                    .execute()
                    .free();
            expect(pair.server, 3, opcode(IbvWC.IbvWcOpcode.IBV_WC_SEND));
            expect(pair.client, 1, opcode(IbvWC.IbvWcOpcode.IBV_WC_RECV));
            assertThat(get(pair.client.received, 0, 10)).isEqualTo("hello back");
        }
    }

    /** As ReadServer and ReadClient, which post the same call again with another length. */
    @Test
    public void endpointsReadAndWriteEachOther() throws Exception {
        try (Pair pair = new Pair(7482)) {
            put(pair.server.data, 0, "what there is to read");
            IbvSendWR read = ActiveEndpoint.send(
                    1001, IbvSendWR.IBV_WR_RDMA_READ, ActiveEndpoint.element(pair.client.dataMr, 0, 21));
            read.getRdma().setRemote_addr(pair.server.dataMr.getAddr());
            read.getRdma().setRkey(pair.server.dataMr.getRkey());
            SVCPostSend prepared = pair.client.prepare(read);
            for (int bytes : new int[] {4, 10, 21}) {
                put(pair.client.data, 0, "-".repeat(ActiveEndpoint.BYTES));
                prepared.getWrMod(0).getSgeMod(0).setLength(bytes);
                prepared.execute();
                expect(pair.client, 1001, opcode(IbvWC.IbvWcOpcode.IBV_WC_RDMA_READ));
                assertThat(get(pair.client.data, 0, bytes + 1))
                        .isEqualTo("what there is to read".substring(0, bytes) + "-");
            }
            prepared.free();
            // Two at once, linked in C's memory.
            put(pair.client.sent, 0, "written");
            IbvSendWR write = ActiveEndpoint.send(
                    1002, IbvSendWR.IBV_WR_RDMA_WRITE, ActiveEndpoint.element(pair.client.sentMr, 0, 7));
            write.getRdma().setRemote_addr(pair.server.dataMr.getAddr() + 128);
            write.getRdma().setRkey(pair.server.dataMr.getRkey());
            pair.client
                    .prepare(
                            write,
                            ActiveEndpoint.send(
                                    1003, IbvSendWR.IBV_WR_SEND, ActiveEndpoint.element(pair.client.sentMr, 0, 7)))
                    .execute()
                    .free();
            expect(pair.client, 1002, opcode(IbvWC.IbvWcOpcode.IBV_WC_RDMA_WRITE));
            expect(pair.client, 1003, opcode(IbvWC.IbvWcOpcode.IBV_WC_SEND));
            expect(pair.server, 1, opcode(IbvWC.IbvWcOpcode.IBV_WC_RECV));
            assertThat(get(pair.server.data, 128, 7)).isEqualTo("written");
        }
    }

    /** What a verbs program makes for a connection. */
    private static final class Resources {
        final IbvContext context;
        final IbvPd domain;
        final IbvCompChannel channel;
        final IbvCQ queue;
        final IbvQP queuePair;
        final IbvWC[] completions = {new IbvWC(), new IbvWC()};
        final SVCPollCq poll;

        Resources(RdmaCmId id) throws IOException {
            context = id.getVerbs();
            assertThat(context.getCmd_fd()).isNotNegative();
            assertThat(context.getNumCompVectors()).isPositive();
            assertThat(context.queryOdpSupport()).isGreaterThanOrEqualTo(-1);
            domain = context.allocPd();
            assertThat(domain.getHandle()).isNotNegative();
            channel = context.createCompChannel();
            queue = context.createCQ(channel, 16, 0);
            queue.reqNotification(false).execute().free();
            IbvQPInitAttr attributes = new IbvQPInitAttr();
            attributes.cap().setMax_recv_sge(1);
            attributes.cap().setMax_recv_wr(8);
            attributes.cap().setMax_send_sge(1);
            attributes.cap().setMax_send_wr(8);
            attributes.setQp_type(IbvQP.IBV_QPT_RC);
            attributes.setRecv_cq(queue);
            attributes.setSend_cq(queue);
            queuePair = id.createQP(domain, attributes);
            assertThat(queuePair.getQp_num()).isPositive();
            poll = queue.poll(completions, completions.length);
        }

        IbvMr register(ByteBuffer memory) throws IOException {
            return domain.regMr(
                            memory,
                            IbvMr.IBV_ACCESS_LOCAL_WRITE | IbvMr.IBV_ACCESS_REMOTE_WRITE | IbvMr.IBV_ACCESS_REMOTE_READ)
                    .execute()
                    .free()
                    .getMr();
        }

        /** Waits for an event and takes the only completion. */
        IbvWC next() throws IOException {
            int taken = poll.execute().getPolls();
            while (taken == 0) {
                assertThat(channel.getCqEvent(queue, EVENT_MILLIS))
                        .as("a completion's event")
                        .isTrue();
                queue.ackEvents(1);
                queue.reqNotification(false).execute().free();
                taken = poll.execute().getPolls();
            }
            assertThat(taken).isEqualTo(1);
            assertThat(completions[0].getStatus()).isEqualTo(SUCCESS);
            return completions[0];
        }

        /** In the order of DiSNI's own classes: the channel before its queue. */
        void close() throws Exception {
            poll.free();
            assertThat(poll.isValid()).isFalse();
            assertThatThrownBy(poll::execute).isInstanceOf(IOException.class);
            channel.destroyCompChannel();
            queue.destroyCQ();
            domain.deallocPd();
        }
    }

    private static RdmaCmEvent next(RdmaEventChannel channel, EventType type) throws IOException {
        RdmaCmEvent event = channel.getCmEvent(EVENT_MILLIS);
        assertThat(event).as("%s within %d ms", type, EVENT_MILLIS).isNotNull();
        assertThat(event.getEvent()).isEqualTo(type.ordinal());
        event.ackEvent();
        return event;
    }

    /** As VerbsServer and VerbsClient. */
    @Test
    public void verbsWorkWithoutEndpoints() throws Exception {
        SocketAddress address = new InetSocketAddress(host(), 7483);
        RdmaEventChannel serverEvents = RdmaEventChannel.createEventChannel();
        RdmaEventChannel clientEvents = RdmaEventChannel.createEventChannel();
        RdmaCmId listener = serverEvents.createId(RdmaCm.RDMA_PS_TCP);
        listener.bindAddr(address);
        listener.listen(10);
        assertThat(clientEvents.getCmEvent(1)).isNull();

        RdmaCmId client = clientEvents.createId(RdmaCm.RDMA_PS_TCP);
        client.resolveAddr(null, address, CONNECT_MILLIS);
        next(clientEvents, EventType.RDMA_CM_EVENT_ADDR_RESOLVED);
        client.resolveRoute(CONNECT_MILLIS);
        next(clientEvents, EventType.RDMA_CM_EVENT_ROUTE_RESOLVED);
        Resources own = new Resources(client);
        assertThatThrownBy(() -> own.queue.poll(own.completions, own.completions.length + 1))
                .isInstanceOf(IllegalArgumentException.class);
        RdmaConnParam parameters = new RdmaConnParam();
        parameters.setRetry_count((byte) 2);
        client.connect(parameters);

        RdmaCmEvent request = next(serverEvents, EventType.RDMA_CM_EVENT_CONNECT_REQUEST);
        assertThat(request.getListenIdPriv()).isSameAs(listener);
        RdmaCmId server = request.getConnIdPriv();
        Resources its = new Resources(server);
        ByteBuffer sent = ByteBuffer.allocateDirect(64);
        ByteBuffer received = ByteBuffer.allocateDirect(64);
        IbvMr sentMr = own.register(sent);
        IbvMr receivedMr = its.register(received);
        IbvRecvWR receive = new IbvRecvWR();
        receive.setWr_id(7);
        receive.setSg_list(new LinkedList<>(List.of(ActiveEndpoint.element(receivedMr, 0, 64))));
        its.queuePair
                .postRecv(new LinkedList<>(List.of(receive)), null)
                .execute()
                .free();
        server.accept(parameters);
        // The client first: on RoCE its library takes the answer, and tells the server so, when it is asked for events.
        next(clientEvents, EventType.RDMA_CM_EVENT_ESTABLISHED);
        next(serverEvents, EventType.RDMA_CM_EVENT_ESTABLISHED);
        assertThat(client.getDestination()).isEqualTo(address);
        assertThat(server.getDestination()).isEqualTo(client.getSource());

        put(sent, 0, "verbs");
        IbvSendWR send = ActiveEndpoint.send(8, IbvSendWR.IBV_WR_SEND, ActiveEndpoint.element(sentMr, 0, 5));
        own.queuePair.postSend(new LinkedList<>(List.of(send)), null).execute().free();
        assertThat(own.next().getWr_id()).isEqualTo(8);
        IbvWC completion = its.next();
        assertThat(completion.getWr_id()).isEqualTo(7);
        assertThat(completion.getByte_len()).isEqualTo(5);
        assertThat(completion.getQp_num()).isEqualTo(its.queuePair.getQp_num());
        assertThat(get(received, 0, 5)).isEqualTo("verbs");

        client.disconnect();
        next(serverEvents, EventType.RDMA_CM_EVENT_DISCONNECTED);
        server.disconnect(); // on RoCE the answer that the client's event waits for
        next(clientEvents, EventType.RDMA_CM_EVENT_DISCONNECTED);
        client.destroyQP();
        server.destroyQP();
        sentMr.deregMr().execute().free();
        receivedMr.deregMr().execute().free();
        own.close();
        its.close();
        clientEvents.destroyEventChannel(); // before its id
        client.destroyId();
        server.destroyId();
        listener.destroyId();
        serverEvents.destroyEventChannel();
    }

    /** As DaRPCServer and DaRPCClient, with their protocol and service, and every answer compared. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    public void darpcAnswers(boolean polling) throws Exception {
        InetSocketAddress address = new InetSocketAddress(host(), polling ? 7484 : 7485);
        DaRPCServerGroup<RdmaRpcRequest, RdmaRpcResponse> servers = DaRPCServerGroup.createServerGroup(
                new RdmaRpcService(0), new long[] {1, 2}, TURN_MILLIS, 0, polling, 16, 16, 16, 4);
        RdmaServerEndpoint<DaRPCServerEndpoint<RdmaRpcRequest, RdmaRpcResponse>> listener =
                servers.createServerEndpoint();
        listener.bind(address, 10);
        FutureTask<DaRPCServerEndpoint<RdmaRpcRequest, RdmaRpcResponse>> accepted = new FutureTask<>(listener::accept);
        Thread.ofPlatform().daemon().start(accepted);
        DaRPCClientGroup<RdmaRpcRequest, RdmaRpcResponse> clients =
                DaRPCClientGroup.createClientGroup(new RdmaRpcProtocol(), TURN_MILLIS, 0, 16, 16);
        DaRPCClientEndpoint<RdmaRpcRequest, RdmaRpcResponse> client = clients.createEndpoint();
        client.connect(address, CONNECT_MILLIS);
        DaRPCServerEndpoint<RdmaRpcRequest, RdmaRpcResponse> server = Patience.await("accepted", accepted);

        DaRPCStream<RdmaRpcRequest, RdmaRpcResponse> stream = client.createStream();
        ArrayDeque<DaRPCFuture<RdmaRpcRequest, RdmaRpcResponse>> outstanding = new ArrayDeque<>();
        List<Integer> answers = new ArrayList<>();
        List<Integer> expected = new ArrayList<>();
        for (int i = 0; i < 500; i++) {
            RdmaRpcRequest request = new RdmaRpcRequest();
            request.setParam(i * 3);
            expected.add(i * 3 + 1);
            outstanding.add(stream.request(request, new RdmaRpcResponse(), false));
            if (outstanding.size() == 8) {
                answers.add(outstanding.poll().get().getName());
            }
        }
        while (!outstanding.isEmpty()) {
            answers.add(outstanding.poll().get().getName());
        }
        assertThat(answers).isEqualTo(expected);

        client.close();
        server.close();
        listener.close();
        clients.close();
        servers.close();
        client.getCqProvider().close();
    }
}
