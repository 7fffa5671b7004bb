package org.verbena.transport.protocol.connection;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.util.Arrays;
import java.util.Random;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.verbena.transport.AuthenticationException;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.Framing;
import org.verbena.transport.PreSharedKeys;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.PrivateData;
import org.verbena.transport.protocol.Role;
import org.verbena.transport.protocol.connection.SimulatedNetwork.Device;
import org.verbena.transport.protocol.handshake.Authentication;
import org.verbena.transport.protocol.wire.Wire;

/** An end without the key is refused, whichever role it plays; ends with the key connect as without keys. */
@Timeout(240)
class AuthenticationTest {
    private static final MessageOptions OPTIONS = MessageOptions.DEFAULTS
            .withReceives(8, 256)
            .withMaxMessageBytes(100_000)
            .withRendezvousThresholdBytes(4000);

    private static final PreSharedKeys KEYS = PreSharedKeys.of("2026", secret(1));

    private final SimulatedNetwork network = new SimulatedNetwork(new Random(1), Device.VERBS, Device.VERBS);
    private Party left;
    private Party right;

    private static byte[] secret(int fill) {
        byte[] secret = new byte[32];
        Arrays.fill(secret, (byte) fill);
        return secret;
    }

    private void connect(MessageOptions options, @Nullable PreSharedKeys leftKeys, @Nullable PreSharedKeys rightKeys) {
        left = party("left", Role.INITIATOR, network.left, options, leftKeys);
        right = party("right", Role.ACCEPTOR, network.right, options, rightKeys);
        left.other = right;
        right.other = left;
        network.connect(
                left.connection, left.connection.privateData(), right.connection, right.connection.privateData());
        settle();
    }

    private static Party party(
            String name, Role role, SimulatedEndpoint endpoint, MessageOptions options, @Nullable PreSharedKeys keys) {
        Party made = Party.of(name, role, endpoint, options);
        if (keys != null) {
            made.connection.authenticate(keys);
        }
        return made;
    }

    private void settle() {
        while (network.step()) {
            // until nothing can happen
        }
    }

    private void assertRefused(Party refusing, Party refused, String why) throws Exception {
        assertThat(refusing.active).isZero();
        assertThat(refused.active).isZero();
        assertThat(refusing.inactiveCause)
                .isInstanceOf(AuthenticationException.class)
                .hasMessageContaining("was disconnected: ")
                .hasMessageContaining(why)
                .hasMessageContaining("Both ends need the same pre-shared key");
        assertThat(refused.inactiveCause)
                .isInstanceOf(ConnectionException.Lost.class)
                .hasMessageContaining("disconnected during the handshake");
        assertThat(refusing.endpoint.isRemoteAccessAllowed).isFalse();
        left.checkMemory();
        right.checkMemory();
    }

    @ParameterizedTest
    @EnumSource(names = {"MESSAGE", "STREAM"})
    void peersWithTheKeyConnect(Framing framing) throws Exception {
        connect(OPTIONS.withFraming(framing), KEYS, KEYS);
        assertThat(left.active).isOne();
        assertThat(right.active).isOne();
        assertThat(left.endpoint.isRemoteAccessAllowed).isTrue();
        assertThat(right.endpoint.isRemoteAccessAllowed).isTrue();
        for (int length : new int[] {1, 300, 50_000}) {
            left.send(length);
            right.sendPooled(length);
        }
        left.connection.flush();
        right.connection.flush();
        settle();
        assertThat(right.received).isEqualTo(3);
        assertThat(left.received).isEqualTo(3);
        left.connection.close();
        settle();
        left.checkMemory();
        right.checkMemory();
    }

    @Test
    void anAcceptorTakesAnyOfItsKeys() {
        connect(OPTIONS, PreSharedKeys.of("2025", secret(9)), KEYS.and("2025", secret(9)));
        assertThat(left.active).isOne();
        assertThat(right.active).isOne();
    }

    @Test
    void anotherSecretIsRefused() throws Exception {
        connect(OPTIONS, PreSharedKeys.of("2026", secret(2)), KEYS);
        assertRefused(right, left, "its proof of the pre-shared key 2026 is wrong: the secrets differ");
        assertThat(left.inactiveCause).hasMessageContaining("does it have the pre-shared key of this end");
    }

    @Test
    void anotherKeyIsRefused() throws Exception {
        connect(OPTIONS, PreSharedKeys.of("2027", secret(1)), KEYS);
        assertRefused(right, left, "this end has no pre-shared key 2027");
    }

    @Test
    void aPeerWithoutKeyIsRejectedBeforeTheConnectionIsUp() {
        byte[] without = PrivateData.of(OPTIONS);
        byte[] rejection = PrivateData.rejection(OPTIONS, KEYS, without);
        assertThat(rejection).isNotNull();
        assertThat(PrivateData.reason(rejection)).isEqualTo(PrivateData.KEY_REQUIRED);
        Party asking = party("left", Role.INITIATOR, network.left, OPTIONS, KEYS);
        assertThat(PrivateData.rejection(OPTIONS, KEYS, asking.connection.privateData()))
                .isNull();
        assertThat(PrivateData.rejection(OPTIONS, null, without)).isNull();
    }

    @Test
    void aPeerThatClaimsAKeyAndProvesNoneIsRefused() throws Exception {
        connect(OPTIONS, null, KEYS);
        assertRefused(right, left, "it did not prove that it has a pre-shared key");
    }

    @Test
    void theInitiatorLeavesAnAcceptorWithoutKeys() throws Exception {
        connect(OPTIONS, KEYS, null);
        assertRefused(left, right, "it has no pre-shared keys");
    }

    @Test
    void theInitiatorLeavesAnAcceptorThatCannotProveItsKey() {
        left = party("left", Role.INITIATOR, network.left, OPTIONS, KEYS);
        Rogue rogue = new Rogue(from -> {});
        rogue.answers = true;
        byte[] acceptance = party("forged", Role.ACCEPTOR, network.right, OPTIONS, KEYS)
                .connection
                .privateData();
        network.connect(left.connection, left.connection.privateData(), rogue, acceptance);
        settle();
        assertThat(left.active).isZero();
        assertThat(left.inactiveCause)
                .isInstanceOf(AuthenticationException.class)
                .hasMessageContaining("it did not prove that it has the pre-shared key 2026");
    }

    // ---- the proofs themselves

    /** The proofs of both ends over a recorded handshake, of which a test may change any bit. */
    private static final class Talk {
        final Authentication initiator = new Authentication(Role.INITIATOR, KEYS);
        final Authentication acceptor = new Authentication(Role.ACCEPTOR, KEYS);
        byte[] acceptance = acceptor.privateData(Wire.preamble(Framing.MESSAGE));
        byte[] hello = new byte[0];

        private static ByteBuf frame(int fill) {
            ByteBuf frame = Unpooled.buffer(512);
            for (int i = 0; i < Wire.HELLO_BYTES; i++) {
                frame.writeByte(fill + i);
            }
            return frame;
        }

        byte[] sayHello() {
            initiator.takeAcceptance(acceptance);
            ByteBuf frame = frame(1);
            frame.writeBytes(initiator.prove(frame, Wire.HEADER_BYTES));
            hello = new byte[frame.readableBytes()];
            frame.readBytes(hello);
            return hello;
        }

        byte[] answer() {
            ByteBuf frame = frame(77);
            frame.writeBytes(acceptor.prove(frame, Wire.HEADER_BYTES));
            byte[] answer = new byte[frame.readableBytes()];
            frame.readBytes(answer);
            return answer;
        }
    }

    private static @Nullable String refusal(Authentication by, byte[] frame) {
        return by.refusal(Unpooled.wrappedBuffer(frame), frame.length);
    }

    @Test
    void proofsCoverEveryBitOfTheHandshake() {
        Talk talk = new Talk();
        byte[] hello = talk.sayHello();
        for (int bit = 8 * Wire.HEADER_BYTES; bit < 8 * hello.length; bit++) {
            byte[] changed = hello.clone();
            changed[bit / 8] ^= (byte) (1 << bit % 8);
            assertThat(refusal(talk.acceptor, changed))
                    .as("bit %d of HELLO", bit)
                    .isNotNull();
        }
        for (int length = Wire.HELLO_BYTES; length < hello.length; length++) {
            assertThat(refusal(talk.acceptor, Arrays.copyOf(hello, length)))
                    .as("HELLO cut to %d bytes", length)
                    .isNotNull();
        }
        assertThat(refusal(talk.acceptor, hello)).isNull();
        byte[] answer = talk.answer();
        for (int bit = 8 * Wire.HEADER_BYTES; bit < 8 * answer.length; bit++) {
            byte[] changed = answer.clone();
            changed[bit / 8] ^= (byte) (1 << bit % 8);
            assertThat(refusal(talk.initiator, changed))
                    .as("bit %d of HELLO_ACK", bit)
                    .isNotNull();
        }
        assertThat(refusal(talk.initiator, Arrays.copyOf(answer, answer.length - 1)))
                .isNotNull();
        assertThat(refusal(talk.initiator, answer)).isNull();
        // What a later version appends is ignored by this one.
        assertThat(refusal(talk.initiator, Arrays.copyOf(answer, answer.length + 9)))
                .isNull();
    }

    @Test
    void proofsCoverEveryBitOfTheAcceptance() {
        for (int bit = 0; bit < 8 * Authentication.ACCEPTANCE_BYTES; bit++) {
            Talk talk = new Talk();
            talk.acceptance[bit / 8] ^= (byte) (1 << bit % 8);
            if (talk.initiator.takeAcceptance(talk.acceptance) == null) {
                assertThat(refusal(talk.acceptor, talk.sayHello()))
                        .as("bit %d of the acceptance", bit)
                        .isNotNull();
            }
        }
    }

    @Test
    void recordedProofsAreRefused() {
        Talk first = new Talk();
        byte[] hello = first.sayHello();
        assertThat(refusal(first.acceptor, hello)).isNull();
        byte[] answer = first.answer();
        assertThat(refusal(first.initiator, answer)).isNull();
        Talk second = new Talk();
        assertThat(refusal(second.acceptor, hello))
                .as("a HELLO of another connection")
                .isNotNull();
        second.sayHello();
        assertThat(refusal(second.initiator, answer))
                .as("a HELLO_ACK of another connection")
                .isNotNull();
    }

    @Test
    void reflectedProofsAreRefused() {
        Talk talk = new Talk();
        byte[] hello = talk.sayHello();
        byte[] reflected = Arrays.copyOf(hello, Wire.HELLO_BYTES + Authentication.PROOF_BYTES);
        System.arraycopy(
                hello,
                hello.length - Authentication.PROOF_BYTES,
                reflected,
                Wire.HELLO_BYTES,
                Authentication.PROOF_BYTES);
        assertThat(refusal(talk.initiator, reflected)).isNotNull();
    }

    @Test
    void theLongestIdFitsIntoTheSmallestReceive() {
        PreSharedKeys longest = PreSharedKeys.of("x".repeat(PreSharedKeys.MAX_ID_LENGTH), secret(1));
        connect(OPTIONS.withReceives(8, Authentication.LEAST_RECEIVE_BYTES), longest, longest);
        assertThat(right.active).isOne();
        MessageOptions tooSmall = OPTIONS.withReceives(8, Authentication.LEAST_RECEIVE_BYTES - 1);
        MessageConnection connection = Party.of("small", Role.INITIATOR, network.left, tooSmall).connection;
        assertThatThrownBy(() -> connection.authenticate(KEYS))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("receiveBufferBytes");
    }

    @Test
    void keysAreValidated() {
        assertThat(KEYS).hasToString("PreSharedKeys[2026]");
        for (String id : new String[] {"", "a b", "a\nb", "\u00e4", "x".repeat(65)}) {
            assertThatThrownBy(() -> PreSharedKeys.of(id, secret(1))).isInstanceOf(IllegalArgumentException.class);
        }
        assertThatThrownBy(() -> PreSharedKeys.of("a", new byte[15]))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("15 bytes")
                .hasMessageNotContaining("[0");
        assertThatThrownBy(() -> KEYS.and("2026", secret(3))).isInstanceOf(IllegalArgumentException.class);
        MessageConnection raw =
                Party.of("raw", Role.INITIATOR, network.left, OPTIONS.withFraming(Framing.RAW)).connection;
        assertThatThrownBy(() -> raw.authenticate(KEYS))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("RAW");
    }
}
