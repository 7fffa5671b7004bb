package org.verbena.ratis;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.concurrent.CompletableFuture;
import org.apache.ratis.proto.RaftProtos.LogEntryProto;
import org.apache.ratis.protocol.Message;
import org.apache.ratis.protocol.RaftClientRequest;
import org.apache.ratis.protocol.RaftGroupId;
import org.apache.ratis.server.RaftServer;
import org.apache.ratis.server.protocol.TermIndex;
import org.apache.ratis.server.storage.FileInfo;
import org.apache.ratis.server.storage.RaftStorage;
import org.apache.ratis.statemachine.TransactionContext;
import org.apache.ratis.statemachine.impl.BaseStateMachine;
import org.apache.ratis.statemachine.impl.SimpleStateMachineStorage;
import org.apache.ratis.statemachine.impl.SingleFileSnapshotInfo;
import org.apache.ratis.util.LifeCycle;
import org.apache.ratis.util.MD5FileUtil;

/** Counts what it applies, with a digest of the messages in their order, and replies with the count. */
final class CountingStateMachine extends BaseStateMachine {
    static final Message QUERY = Message.valueOf("count");

    /** Asks for a {@link State} as text. */
    static final Message STATE = Message.valueOf("state");

    /** What is refused before it is in the log. */
    static final Message INVALID = Message.valueOf("invalid");

    /** How many messages, and a digest of them. */
    record State(long count, long digest) {
        State and(Message message) {
            return new State(count + 1, digest * 31 + message.getContent().hashCode());
        }
    }

    private final SimpleStateMachineStorage storage = new SimpleStateMachineStorage();
    private State state = new State(0, 0); // guarded by this
    private boolean loaded; // from a snapshot; guarded by this

    synchronized State state() {
        return state;
    }

    long count() {
        return state().count();
    }

    synchronized boolean isFromSnapshot() {
        return loaded;
    }

    @Override
    public void initialize(RaftServer server, RaftGroupId group, RaftStorage files) throws IOException {
        getLifeCycle()
                .startAndTransition(
                        () -> {
                            super.initialize(server, group, files);
                            storage.init(files);
                            load();
                        },
                        IOException.class);
    }

    /** While a snapshot is installed. */
    @Override
    public void pause() {
        getLifeCycle().transition(LifeCycle.State.PAUSING);
        getLifeCycle().transition(LifeCycle.State.PAUSED);
    }

    /** A snapshot is installed. */
    @Override
    public void reinitialize() throws IOException {
        getLifeCycle().startAndTransition(this::load, IOException.class);
    }

    private synchronized void load() throws IOException {
        SingleFileSnapshotInfo snapshot = storage.loadLatestSnapshot();
        if (snapshot == null) {
            return;
        }
        File file = snapshot.getFile().getPath().toFile();
        MD5FileUtil.verifySavedMD5(file, snapshot.getFile().getFileDigest());
        String[] parts = Files.readString(file.toPath()).split(" ");
        state = new State(Long.parseLong(parts[0]), Long.parseLong(parts[1]));
        updateLastAppliedTermIndex(SimpleStateMachineStorage.getTermIndexFromSnapshotFile(file));
        loaded = true;
    }

    @Override
    public SimpleStateMachineStorage getStateMachineStorage() {
        return storage;
    }

    @Override
    public synchronized long takeSnapshot() throws IOException {
        TermIndex applied = getLastAppliedTermIndex();
        File file = storage.getSnapshotFile(applied.getTerm(), applied.getIndex());
        Files.writeString(file.toPath(), state.count() + " " + state.digest());
        FileInfo info = new FileInfo(file.toPath(), MD5FileUtil.computeAndSaveMd5ForFile(file));
        storage.updateLatestSnapshot(new SingleFileSnapshotInfo(info, applied));
        return applied.getIndex();
    }

    @Override
    public CompletableFuture<Message> query(Message request) {
        State now = state();
        boolean isCount = request.getContent().equals(QUERY.getContent());
        return CompletableFuture.completedFuture(
                Message.valueOf(isCount ? String.valueOf(now.count()) : now.toString()));
    }

    @Override
    public CompletableFuture<Message> queryStale(Message request, long minIndex) {
        return query(request);
    }

    @Override
    public TransactionContext startTransaction(RaftClientRequest request) throws IOException {
        TransactionContext transaction = super.startTransaction(request);
        if (request.getMessage().getContent().equals(INVALID.getContent())) {
            transaction.setException(new IOException("an invalid message"));
        }
        return transaction;
    }

    @Override
    public synchronized CompletableFuture<Message> applyTransaction(TransactionContext transaction) {
        LogEntryProto entry = transaction.getLogEntry();
        updateLastAppliedTermIndex(entry.getTerm(), entry.getIndex());
        state = state.and(Message.valueOf(entry.getStateMachineLogEntry().getLogData()));
        return CompletableFuture.completedFuture(Message.valueOf(String.valueOf(state.count())));
    }
}
