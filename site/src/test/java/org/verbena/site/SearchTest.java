package org.verbena.site;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.graalvm.polyglot.Context;
import org.graalvm.polyglot.TypeLiteral;
import org.graalvm.polyglot.Value;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What people look for is among the first three results; the site's own script finds them. */
class SearchTest {
    private static final Path SITE = Path.of(System.getProperty("site"));

    private static Context script;

    @BeforeAll
    static void makeIndex() throws IOException {
        script = Context.newBuilder("js")
                .option("engine.WarnInterpreterOnly", "false")
                .build();
        for (String file : List.of("lunr.js", "search-data.js", "search.js")) {
            script.eval("js", Files.readString(SITE.resolve(file)));
        }
        script.eval("js", "makeIndex()");
    }

    @AfterAll
    static void close() {
        script.close();
    }

    @ParameterizedTest
    @CsvSource({
        "timeout, guide.html#the-short-form",
        "cancel, guide.html#the-short-form",
        "reconnect, guide.html#connections-that-come-and-go",
        "shutdown, guide.html#stopping-a-server",
        "load balancing, guide.html#connections-that-come-and-go",
        "backpressure, guide.html#flow-control",
        "rdma read, guide.html#one-sided-operations",
        "virtual threads, guide.html#threads-and-handlers-that-block",
        "unit test, guide.html#tests-without-a-network",
        "multicast, guide.html#datagrams",
        "push, guide.html#messages-from-the-server",
        "latency, performance.html",
        "kubernetes, kubernetes.html",
        "docker, kubernetes.html",
        "memlock, running.html#memory-that-may-be-locked",
        "gradle, running.html#packaging",
        "prometheus, observability.html#micrometer",
        "spring boot, frameworks.html#spring-webflux",
        "shared memory, shm.html",
        "tls, rpc.html#tls",
        "getting started, tutorial.html",
        "example, recipes.html",
        "sizing, running.html#sizing-a-server",
        "RdmaClient, api/org.verbena.api/org/verbena/api/RdmaClient.html",
    })
    void findsWhatPeopleLookFor(String query, String url) {
        script.getBindings("js").putMember("query", query);
        Value found = script.eval("js", "find(query).slice(0, 3).map(hit => hit.url)");
        assertThat(found.as(new TypeLiteral<List<String>>() {})).contains(url);
    }
}
