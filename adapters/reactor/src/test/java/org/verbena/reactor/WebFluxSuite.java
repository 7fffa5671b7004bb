package org.verbena.reactor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.net.ConnectException;
import java.time.Duration;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.http.MediaType;
import org.springframework.http.client.ReactorResourceFactory;
import org.springframework.http.client.reactive.ReactorClientHttpConnector;
import org.springframework.http.server.reactive.ReactorHttpHandlerAdapter;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.reactive.config.EnableWebFlux;
import org.springframework.web.reactive.function.client.WebClient;
import org.springframework.web.reactive.function.client.WebClientRequestException;
import org.springframework.web.server.adapter.WebHttpHandlerBuilder;
import org.verbena.api.RdmaSocketChannel;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.spi.Patience;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.netty.Connection;
import reactor.netty.DisposableServer;
import reactor.netty.http.server.HttpServer;

/** A controller of Spring WebFlux, and Spring's client, over Verbena. */
@Timeout(200)
public abstract class WebFluxSuite {
    private final Queue<Class<?>> channels = new ConcurrentLinkedQueue<>();
    private AnnotationConfigApplicationContext context;
    private DisposableServer server;

    /** The provider's name. */
    protected abstract String provider();

    /** Where the server listens. */
    protected String host() {
        return "127.0.0.1";
    }

    private ReactorResourceFactory resources() {
        ReactorResourceFactory resources = new ReactorResourceFactory();
        resources.setUseGlobalResources(false);
        resources.setShutdownQuietPeriod(Duration.ZERO);
        resources.setLoopResourcesSupplier(() -> new RdmaLoopResources(
                "web", ProviderChoice.choose(provider(), null), 2, true, CompletionLoopOptions.DEFAULTS));
        return resources;
    }

    @Configuration
    @EnableWebFlux
    static class Application {
        @Bean
        Greetings greetings() {
            return new Greetings();
        }
    }

    @RestController
    static class Greetings {
        @GetMapping("/greet/{name}")
        Mono<String> greet(@PathVariable("name") String name) {
            return Mono.just("hello " + name);
        }

        @PostMapping(path = "/shout", consumes = MediaType.TEXT_PLAIN_VALUE)
        Mono<String> shout(@RequestBody Mono<String> text) {
            return text.map(said -> said + "!");
        }

        @GetMapping(path = "/count/{end}", produces = MediaType.TEXT_EVENT_STREAM_VALUE)
        Flux<String> count(@PathVariable("end") int end) {
            return Flux.range(1, end).map(String::valueOf);
        }
    }

    @BeforeEach
    void start() {
        context = new AnnotationConfigApplicationContext();
        context.registerBean(ReactorResourceFactory.class, this::resources);
        context.register(Application.class);
        context.refresh();
        server = HttpServer.create()
                .runOn(context.getBean(ReactorResourceFactory.class).getLoopResources())
                .host(host())
                .doOnConnection(this::note)
                .handle(new ReactorHttpHandlerAdapter(
                        WebHttpHandlerBuilder.applicationContext(context).build()))
                .bindNow(Patience.LIMIT);
    }

    @AfterEach
    void stop() {
        server.disposeNow(Patience.LIMIT);
        context.close();
    }

    private void note(Connection connection) {
        channels.add(connection.channel().getClass());
    }

    private WebClient client(int port) {
        return WebClient.builder()
                .baseUrl("http://" + host() + ":" + port)
                .clientConnector(new ReactorClientHttpConnector(
                        context.getBean(ReactorResourceFactory.class), client -> client.doOnConnected(this::note)))
                .codecs(codecs -> codecs.defaultCodecs().maxInMemorySize(8 << 20))
                .build();
    }

    @Test
    void aControllerAnswers() {
        WebClient client = client(server.port());
        assertThat(client.get()
                        .uri("/greet/{name}", "verbena")
                        .retrieve()
                        .bodyToMono(String.class)
                        .block(Patience.LIMIT))
                .isEqualTo("hello verbena");
        String text = "0123456789".repeat(20_000);
        assertThat(client.post()
                        .uri("/shout")
                        .contentType(MediaType.TEXT_PLAIN)
                        .bodyValue(text)
                        .retrieve()
                        .bodyToMono(String.class)
                        .block(Patience.LIMIT))
                .isEqualTo(text + "!");
        assertThat(channels).hasSizeGreaterThanOrEqualTo(2).containsOnly(RdmaSocketChannel.class);
    }

    @Test
    void aControllerStreams() {
        assertThat(client(server.port())
                        .get()
                        .uri("/count/1000")
                        .retrieve()
                        .bodyToFlux(String.class)
                        .collectList()
                        .block(Patience.LIMIT))
                .hasSize(1000)
                .endsWith("999", "1000");
    }

    @Test
    void aServerThatIsNotThereIsRefused() {
        assertThat(catchThrowable(() -> client(1)
                        .get()
                        .uri("/greet/nobody")
                        .retrieve()
                        .bodyToMono(String.class)
                        .block(Patience.LIMIT)))
                .isInstanceOf(WebClientRequestException.class)
                .cause()
                .isInstanceOf(ConnectException.class);
    }
}
