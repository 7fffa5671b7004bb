package org.verbena.it.lab;

import com.ibm.jnvmf.CommandFuture;
import com.ibm.jnvmf.Controller;
import com.ibm.jnvmf.GenericStatusCode;
import com.ibm.jnvmf.IoQueuePair;
import com.ibm.jnvmf.KeyedNativeBuffer;
import com.ibm.jnvmf.Namespace;
import com.ibm.jnvmf.NamespaceIdentifier;
import com.ibm.jnvmf.NvmIoCommand;
import com.ibm.jnvmf.NvmIoCommandSqe;
import com.ibm.jnvmf.NvmReadCommand;
import com.ibm.jnvmf.NvmResponseCapsule;
import com.ibm.jnvmf.NvmWriteCommand;
import com.ibm.jnvmf.Nvme;
import com.ibm.jnvmf.NvmeQualifiedName;
import com.ibm.jnvmf.NvmfTransportId;
import com.ibm.jnvmf.ResponseFuture;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** A program on jNVMf: writes to a disk, reads back and compares. In a JVM of its own, since jNVMf needs a flag. */
public final class NvmeBlocks {
    static final int BLOCK_BYTES = 512;

    /** First blocks and how many; the last is of many of the kernel's pages. */
    static final int[][] EXTENTS = {{0, 1}, {1, 7}, {64, 8}, {1000, 33}, {4096, 256}};

    private static final int QUEUE_DEPTH = 32;

    private final Controller controller;
    private final IoQueuePair queue;

    private NvmeBlocks(Controller controller, IoQueuePair queue) {
        this.controller = controller;
        this.queue = queue;
    }

    /** What is at a place of the disk after this has run, if it wrote there. */
    static byte written(long offset) {
        return (byte) (offset * 31 + (offset >>> 9) * 7 + 1);
    }

    /** A command under way. */
    private record Running(CommandFuture<?, NvmResponseCapsule> sent, ResponseFuture<NvmResponseCapsule> answered) {
        void await() throws Exception {
            sent.get();
            Object status = answered.get().getCompletionQueueEntry().getStatusCode();
            if (!status.equals(GenericStatusCode.getInstance().SUCCESS)) {
                throw new IOException("the target answered " + status);
            }
        }
    }

    private Running start(NvmIoCommand<?> command, KeyedNativeBuffer memory, int[] extent) throws IOException {
        command.getCommandCapsule().setSglDescriptor(memory);
        NvmIoCommandSqe entry = command.getCommandCapsule().getSubmissionQueueEntry();
        entry.setStartingLba(extent[0]);
        entry.setNumberOfLogicalBlocks(extent[1]);
        entry.setNamespaceIdentifier(new NamespaceIdentifier(1));
        CommandFuture<?, NvmResponseCapsule> sent = command.newCommandFuture();
        ResponseFuture<NvmResponseCapsule> answered = command.newResponseFuture();
        command.execute(answered);
        return new Running(sent, answered);
    }

    private int writeAndRead() throws Exception {
        List<Running> running = new ArrayList<>();
        for (int[] extent : EXTENTS) { // all at once
            ByteBuffer memory = ByteBuffer.allocateDirect(extent[1] * BLOCK_BYTES);
            for (int i = 0; i < memory.capacity(); i++) {
                memory.put(i, written((long) extent[0] * BLOCK_BYTES + i));
            }
            running.add(start(new NvmWriteCommand(queue), queue.registerMemory(memory), extent));
        }
        for (Running write : running) {
            write.await();
        }
        running.clear();
        List<ByteBuffer> read = new ArrayList<>();
        for (int[] extent : EXTENTS) {
            ByteBuffer memory = ByteBuffer.allocateDirect(extent[1] * BLOCK_BYTES);
            read.add(memory);
            running.add(start(new NvmReadCommand(queue), queue.registerMemory(memory), extent));
        }
        int compared = 0;
        for (int n = 0; n < EXTENTS.length; n++) {
            running.get(n).await();
            for (int i = 0; i < read.get(n).capacity(); i++) {
                long offset = (long) EXTENTS[n][0] * BLOCK_BYTES + i;
                if (read.get(n).get(i) != written(offset)) {
                    throw new IOException("another byte at " + offset);
                }
                compared++;
            }
        }
        return compared;
    }

    /**
     * Runs it.
     *
     * @param arguments the target's address, port and name
     */
    public static void main(String[] arguments) throws Exception {
        Controller controller = new Nvme()
                .connect(new NvmfTransportId(
                        new InetSocketAddress(arguments[0], Integer.parseInt(arguments[1])),
                        new NvmeQualifiedName(arguments[2])));
        controller.getControllerConfiguration().setEnable(true);
        controller.syncConfiguration();
        controller.waitUntilReady();
        System.out.println("model " + controller.getIdentifyControllerData().getModelNumber());
        List<Namespace> namespaces = controller.getActiveNamespaces();
        System.out.println("namespaces " + namespaces.size() + " blocks "
                + namespaces.getFirst().getIdentifyNamespaceData().getNamespaceSize());
        NvmeBlocks blocks = new NvmeBlocks(controller, controller.createIoQueuePair(QUEUE_DEPTH));
        System.out.println("compared " + blocks.writeAndRead() + " bytes");
        blocks.controller.free();
        System.out.println("done");
    }
}
