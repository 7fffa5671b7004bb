package org.verbena.jgroups;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jgroups.BytesMessage;
import org.jgroups.Message;
import org.jgroups.View;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.transport.spi.ChildJvm;
import org.verbena.transport.spi.Patience;

/** Members in processes of their own, of which one is killed as {@code kill -9} does. */
@Tag("full")
@Timeout(240)
class KilledMemberTest {
    private static final String HOST = "127.0.0.1";

    private final List<Process> processes = new ArrayList<>();

    /** A member that answers each message to all with the same one, to its sender. */
    static final class Answering {
        public static void main(String[] arguments) throws Exception {
            List<Integer> ports =
                    Arrays.stream(arguments[2].split(",")).map(Integer::valueOf).toList();
            try (Member member =
                    Member.join(Member.Place.of(arguments[0], HOST, ports), Integer.parseInt(arguments[1]))) {
                while (true) {
                    Message message = member.awaitNext();
                    if (message.getDest() == null) {
                        member.channel().send(new BytesMessage(message.getSrc(), message.<byte[]>getPayload()));
                    }
                }
            }
        }
    }

    private Process start(Member.Place place, int number) throws IOException {
        String ports =
                String.join(",", place.ports().stream().map(String::valueOf).toList());
        Process process = new ProcessBuilder(
                        ChildJvm.command(List.of(), Answering.class, place.provider(), String.valueOf(number), ports))
                .inheritIO()
                .start();
        processes.add(process);
        return process;
    }

    @AfterEach
    void killAll() {
        processes.forEach(Process::destroyForcibly);
    }

    private static void awaitMembers(Member member, int count) {
        Patience.until(
                count + " members, where there are " + member.channel().getView(),
                () -> member.channel().getView().size() == count);
    }

    /** Takes its own message as well. */
    private static void ask(Member member, int others, int length) throws Exception {
        byte[] question = new byte[length];
        Arrays.fill(question, (byte) others);
        member.channel().send(new BytesMessage(null, question));
        for (int i = 0; i < others + 1; i++) {
            assertThat(member.take().<byte[]>getPayload()).isEqualTo(question);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"soft", "shm"})
    void theOthersGoOnAndItComesBack(String provider) throws Exception {
        Member.Place place = Member.Place.of(provider, HOST, 3);
        try (Member member = Member.join(place, 0)) {
            start(place, 1);
            awaitMembers(member, 2);
            Process killed = start(place, 2);
            awaitMembers(member, 3);
            ask(member, 2, 100);
            ask(member, 2, 3 << 20);

            View before = member.channel().getView();
            killed.destroyForcibly(); // SIGKILL
            awaitMembers(member, 2);
            assertThat(before.getMembers())
                    .containsAll(member.channel().getView().getMembers());
            ask(member, 1, 100);

            start(place, 2);
            awaitMembers(member, 3);
            ask(member, 2, 3 << 20);
        }
    }
}
