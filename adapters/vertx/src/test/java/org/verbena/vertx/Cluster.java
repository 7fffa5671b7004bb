package org.verbena.vertx;

import io.vertx.core.Completable;
import io.vertx.core.Vertx;
import io.vertx.core.shareddata.AsyncMap;
import io.vertx.core.shareddata.Counter;
import io.vertx.core.shareddata.Lock;
import io.vertx.core.spi.cluster.ClusterManager;
import io.vertx.core.spi.cluster.NodeInfo;
import io.vertx.core.spi.cluster.NodeListener;
import io.vertx.core.spi.cluster.RegistrationInfo;
import io.vertx.core.spi.cluster.RegistrationListener;
import io.vertx.core.spi.cluster.RegistrationUpdateEvent;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/** A cluster whose members are all in this process: who they are, and who listens to what. Any thread. */
final class Cluster {
    private final Map<String, Member> members = new LinkedHashMap<>();
    private final Map<String, NodeInfo> nodes = new LinkedHashMap<>();
    private final Map<String, List<RegistrationInfo>> registrations = new LinkedHashMap<>();

    ClusterManager newMember() {
        return new Member();
    }

    private synchronized List<String> nodeIds() {
        return List.copyOf(members.keySet());
    }

    private synchronized List<Member> members() {
        return List.copyOf(members.values());
    }

    private synchronized NodeInfo node(String id) {
        return nodes.get(id);
    }

    private synchronized void set(String id, NodeInfo node) {
        nodes.put(id, node);
    }

    private synchronized List<RegistrationInfo> registered(String address) {
        return List.copyOf(registrations.getOrDefault(address, List.of()));
    }

    private void change(String address, RegistrationInfo registration, boolean added) {
        synchronized (this) {
            List<RegistrationInfo> those = registrations.computeIfAbsent(address, none -> new ArrayList<>());
            if (added) {
                those.add(registration);
            } else {
                those.remove(registration);
            }
        }
        for (Member member : members()) {
            member.listener.registrationsUpdated(new RegistrationUpdateEvent(address, registered(address)));
        }
    }

    private final class Member implements ClusterManager {
        private final String id = UUID.randomUUID().toString();
        private volatile RegistrationListener listener;

        @Override
        public void init(Vertx vertx) {}

        @Override
        public void join(Completable<Void> joined) {
            synchronized (Cluster.this) {
                members.put(id, this);
            }
            joined.succeed();
        }

        @Override
        public void leave(Completable<Void> left) {
            synchronized (Cluster.this) {
                members.remove(id);
                nodes.remove(id);
                registrations
                        .values()
                        .forEach(those -> those.removeIf(each -> each.nodeId().equals(id)));
            }
            left.succeed();
        }

        @Override
        public boolean isActive() {
            return nodeIds().contains(id);
        }

        @Override
        public String getNodeId() {
            return id;
        }

        @Override
        public List<String> getNodes() {
            return nodeIds();
        }

        @Override
        public void nodeListener(NodeListener nodeListener) {}

        @Override
        public void setNodeInfo(NodeInfo info, Completable<Void> done) {
            set(id, info);
            done.succeed();
        }

        @Override
        public NodeInfo getNodeInfo() {
            return node(id);
        }

        @Override
        public void getNodeInfo(String nodeId, Completable<NodeInfo> done) {
            done.succeed(node(nodeId));
        }

        @Override
        public void registrationListener(RegistrationListener registrationListener) {
            listener = registrationListener;
        }

        @Override
        public void addRegistration(String address, RegistrationInfo registration, Completable<Void> done) {
            change(address, registration, true);
            done.succeed();
        }

        @Override
        public void removeRegistration(String address, RegistrationInfo registration, Completable<Void> done) {
            change(address, registration, false);
            done.succeed();
        }

        @Override
        public void getRegistrations(String address, Completable<List<RegistrationInfo>> done) {
            done.succeed(registered(address));
        }

        // ---- shared data, which no test uses
        // -----------------------------------------------------------------------------------------------------

        @Override
        public <K, V> void getAsyncMap(String name, Completable<AsyncMap<K, V>> done) {
            throw new UnsupportedOperationException(name);
        }

        @Override
        public <K, V> Map<K, V> getSyncMap(String name) {
            throw new UnsupportedOperationException(name);
        }

        @Override
        public void getLockWithTimeout(String name, long timeoutMillis, Completable<Lock> done) {
            throw new UnsupportedOperationException(name);
        }

        @Override
        public void getCounter(String name, Completable<Counter> done) {
            throw new UnsupportedOperationException(name);
        }
    }
}
