package org.verbena.jgroups;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.infinispan.Cache;
import org.infinispan.configuration.cache.CacheMode;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.global.GlobalConfigurationBuilder;
import org.infinispan.factories.GlobalComponentRegistry;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.remoting.transport.Transport;
import org.infinispan.remoting.transport.jgroups.JGroupsTransport;
import org.jgroups.util.Util;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.spi.Patience;

/** Infinispan's caches of three nodes, of which one is lost. */
@Tag("full")
@Timeout(240)
class InfinispanTest {
    private static final int ENTRIES = 500;

    private final List<DefaultCacheManager> managers = new ArrayList<>();

    private DefaultCacheManager start(Member.Place place, int number) {
        GlobalConfigurationBuilder global = GlobalConfigurationBuilder.defaultClusteredBuilder();
        global.transport()
                .defaultTransport()
                .clusterName("caches")
                .nodeName("node" + number)
                .addProperty(JGroupsTransport.CONFIGURATION_XML, place.xml(number));
        global.jmx().disable();
        DefaultCacheManager manager = new DefaultCacheManager(global.build());
        managers.add(manager);
        manager.defineConfiguration("replicated", cache(CacheMode.REPL_SYNC).build());
        ConfigurationBuilder distributed = cache(CacheMode.DIST_SYNC);
        distributed.clustering().hash().numOwners(2);
        manager.defineConfiguration("distributed", distributed.build());
        return manager;
    }

    private static ConfigurationBuilder cache(CacheMode mode) {
        ConfigurationBuilder builder = new ConfigurationBuilder();
        builder.clustering().cacheMode(mode).remoteTimeout(Patience.LIMIT.toMillis());
        return builder;
    }

    @AfterEach
    void stop() {
        managers.reversed().forEach(DefaultCacheManager::stop);
    }

    private static String value(int number) {
        return "value " + number + " ".repeat(number * 20);
    }

    private void checkAll(List<DefaultCacheManager> nodes) {
        for (DefaultCacheManager node : nodes) {
            for (String name : List.of("replicated", "distributed")) {
                Cache<String, String> cache = node.getCache(name);
                for (int i = 0; i < ENTRIES; i++) {
                    assertThat(cache.get("key " + i)).isEqualTo(value(i));
                }
            }
        }
    }

    @Test
    void noEntryIsLostWithANode() throws Exception {
        Member.Place place = Member.Place.of("soft", "127.0.0.1", 3);
        for (int i = 0; i < 3; i++) {
            DefaultCacheManager manager = start(place, i);
            for (String name : List.of("replicated", "distributed")) {
                manager.getCache(name);
            }
        }
        for (DefaultCacheManager manager : managers) {
            Patience.until("three nodes", () -> manager.getMembers().size() == 3);
        }
        for (int i = 0; i < ENTRIES; i++) {
            for (String name : List.of("replicated", "distributed")) {
                managers.get(i % 3).<String, String>getCache(name).put("key " + i, value(i));
            }
        }
        checkAll(managers);

        DefaultCacheManager lost = managers.get(2);
        JGroupsTransport transport = (JGroupsTransport) GlobalComponentRegistry.componentOf(lost, Transport.class);
        assertThat(transport.getChannel().getProtocolStack().getTransport()).isInstanceOf(VERBENA.class);
        Util.shutdown(transport.getChannel(), false);
        List<DefaultCacheManager> others = managers.subList(0, 2);
        for (DefaultCacheManager manager : others) {
            Patience.until("two nodes", () -> manager.getMembers().size() == 2);
        }
        checkAll(others);
        for (DefaultCacheManager manager : others) {
            manager.<String, String>getCache("distributed").put("later " + manager.getAddress(), "there");
        }
        for (DefaultCacheManager manager : others) {
            for (DefaultCacheManager writer : others) {
                assertThat(manager.<String, String>getCache("distributed").get("later " + writer.getAddress()))
                        .isEqualTo("there");
            }
        }
    }
}
