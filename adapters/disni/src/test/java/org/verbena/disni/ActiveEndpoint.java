package org.verbena.disni;

import com.ibm.disni.RdmaActiveEndpoint;
import com.ibm.disni.RdmaActiveEndpointGroup;
import com.ibm.disni.verbs.IbvMr;
import com.ibm.disni.verbs.IbvRecvWR;
import com.ibm.disni.verbs.IbvSendWR;
import com.ibm.disni.verbs.IbvSge;
import com.ibm.disni.verbs.IbvWC;
import com.ibm.disni.verbs.RdmaCmId;
import com.ibm.disni.verbs.SVCPostSend;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.LinkedList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/** An end of a connection as DiSNI's examples have them: three buffers, one receive that is posted at first. */
final class ActiveEndpoint extends RdmaActiveEndpoint {
    static final int BYTES = 256;

    final ByteBuffer data = ByteBuffer.allocateDirect(BYTES);
    final ByteBuffer sent = ByteBuffer.allocateDirect(BYTES);
    final ByteBuffer received = ByteBuffer.allocateDirect(BYTES);
    final BlockingQueue<Completion> completions = new LinkedBlockingQueue<>();

    IbvMr dataMr;
    IbvMr sentMr;
    IbvMr receivedMr;

    /** What a completion says. */
    record Completion(long id, int status, int opcode, int bytes) {}

    ActiveEndpoint(RdmaActiveEndpointGroup<ActiveEndpoint> group, RdmaCmId id, boolean serverSide) throws IOException {
        super(group, id, serverSide);
    }

    @Override
    public synchronized void init() throws IOException {
        super.init();
        dataMr = registerMemory(data).execute().free().getMr();
        sentMr = registerMemory(sent).execute().free().getMr();
        receivedMr = registerMemory(received).execute().free().getMr();
        postReceive(1);
    }

    @Override
    public void dispatchCqEvent(IbvWC completion) {
        completions.add(new Completion(
                completion.getWr_id(), completion.getStatus(), completion.getOpcode(), completion.getByte_len()));
    }

    void postReceive(long id) throws IOException {
        IbvRecvWR receive = new IbvRecvWR();
        receive.setWr_id(id);
        receive.setSg_list(new LinkedList<>(List.of(element(receivedMr, 0, BYTES))));
        postRecv(new LinkedList<>(List.of(receive))).execute().free();
    }

    static IbvSge element(IbvMr region, int offset, int bytes) {
        IbvSge element = new IbvSge();
        element.setAddr(region.getAddr() + offset);
        element.setLength(bytes);
        element.setLkey(region.getLkey());
        return element;
    }

    static IbvSendWR send(long id, int opcode, IbvSge... elements) {
        IbvSendWR send = new IbvSendWR();
        send.setWr_id(id);
        send.setOpcode(opcode);
        send.setSend_flags(IbvSendWR.IBV_SEND_SIGNALED);
        send.setSg_list(new LinkedList<>(List.of(elements)));
        return send;
    }

    SVCPostSend prepare(IbvSendWR... sends) throws IOException {
        return postSend(new LinkedList<>(List.of(sends)));
    }

    void release() throws IOException {
        deregisterMemory(dataMr);
        deregisterMemory(sentMr);
        deregisterMemory(receivedMr);
    }
}
