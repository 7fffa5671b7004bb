package org.verbena.verbs.packet;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.net.Inet4Address;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.OptionalInt;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.Context;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.Stub;
import org.verbena.verbs.Verbs;
import org.verbena.verbs.VerbsException;
import org.verbena.verbs.VerbsObject;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.queue.QueuePairType;

/** Steering rules, their counters and actions arrive in C as given, and are given back in the right order. */
@Timeout(240)
class FlowTest {
    private static final QueuePairCapabilities SIZES = new QueuePairCapabilities(4, 4, 2, 2, 16);
    private static final HexFormat HEX = HexFormat.of();
    private static final byte[] MAC = HEX.parseHex("661122334455");

    private Context context;
    private ProtectionDomain domain;
    private CompletionQueue completions;
    private QueuePair queuePair;

    @BeforeEach
    void open() throws Exception {
        Stub.install();
        context = Verbs.device("stub0").open();
        domain = context.allocateProtectionDomain();
        completions = context.createCompletionQueue(8);
        queuePair = domain.createQueuePair(
                QueuePairOptions.reliable(completions, SIZES).withType(QueuePairType.RAW_PACKET));
    }

    @AfterEach
    void close() {
        queuePair.close();
        completions.close();
        domain.close();
        context.close();
        assertThat(Stub.live()).isZero();
    }

    private static Inet4Address ipv4(String address) throws Exception {
        return (Inet4Address) InetAddress.getByName(address);
    }

    private static Inet6Address ipv6(String address) throws Exception {
        return (Inet6Address) InetAddress.getByName(address);
    }

    private static String pointer(VerbsObject object) {
        return "0x" + Long.toHexString(object.nativeAddress());
    }

    /** What C saw of a rule behind its head. */
    private String seen(FlowSpec... specs) {
        try (Flow flow = Flow.create(queuePair, FlowRule.steering(1, specs))) {
            String head = "type=0 priority=0 port=1 flags=0 qp=" + pointer(queuePair) + " ";
            assertThat(flow.isOpen()).isTrue();
            assertThat(Stub.text("stub_text")).startsWith(head);
            return Stub.text("stub_text").substring(head.length());
        }
    }

    @Test
    void theHeadOfARuleArrivesAsGiven() {
        FlowRule rule = FlowRule.steering(255, FlowMatch.of(FlowHeader.TCP))
                .withPriority(0xffff)
                .withFlags(Set.of(FlowFlag.DONT_TRAP, FlowFlag.EGRESS));
        try (Flow flow = Flow.create(queuePair, rule)) {
            assertThat(Stub.text("stub_text"))
                    .startsWith("type=0 priority=65535 port=255 flags=6 qp=" + pointer(queuePair) + " tcp");
            assertThat(flow.rule()).isEqualTo(rule);
        }
        for (FlowRuleType type : List.of(FlowRuleType.ALL_DEFAULT, FlowRuleType.MC_DEFAULT, FlowRuleType.SNIFFER)) {
            Flow.create(queuePair, FlowRule.of(type, 2)).close();
            assertThat(Stub.text("stub_text"))
                    .isEqualTo("type=" + type.value() + " priority=0 port=2 flags=0 qp=" + pointer(queuePair));
        }
    }

    @Test
    void everyHeaderArrivesInNetworkOrderWithItsMask() throws Exception {
        assertThat(seen(FlowMatch.of(FlowHeader.ETHERNET)
                        .field(FlowField.DESTINATION_MAC, MAC)
                        .field(FlowField.SOURCE_MAC, MAC, HEX.parseHex("ffffff000000"))
                        .field(FlowField.ETHER_TYPE, 0x0800)
                        .field(FlowField.VLAN, 0x123)))
                .isEqualTo("eth dst_mac=661122334455 &=ffffffffffff src_mac=661122000000 &=ffffff000000"
                        + " ether_type=0800 &=ffff vlan_tag=0123 &=0fff");
        assertThat(seen(FlowMatch.of(FlowHeader.ETHERNET).field(FlowField.SOURCE_MAC, MAC)))
                .isEqualTo("eth dst_mac=000000000000 &=000000000000 src_mac=661122334455 &=ffffffffffff"
                        + " ether_type=0000 &=0000 vlan_tag=0000 &=0000");
        assertThat(seen(FlowMatch.of(FlowHeader.ETHERNET).field(FlowField.VLAN_TAG, 0xe001, 0xe000)))
                .isEqualTo("eth dst_mac=000000000000 &=000000000000 src_mac=000000000000 &=000000000000"
                        + " ether_type=0000 &=0000 vlan_tag=e000 &=e000");
        assertThat(seen(FlowMatch.of(FlowHeader.IPV4)
                        .prefix(FlowField.IPV4_SOURCE, ipv4("10.1.2.3"), 9)
                        .prefix(FlowField.IPV4_DESTINATION, ipv4("192.168.1.255"), 32)))
                .isEqualTo("ipv4 src_ip=0a000000 &=ff800000 dst_ip=c0a801ff &=ffffffff");
        assertThat(seen(FlowMatch.of(FlowHeader.IPV4)
                        .prefix(FlowField.IPV4_SOURCE, ipv4("10.1.2.3"), 32)
                        .field(FlowField.IPV4_PROTOCOL, 17)
                        .field(FlowField.IPV4_TYPE_OF_SERVICE, 0xfc)
                        .field(FlowField.IPV4_TIME_TO_LIVE, 64)
                        .field(FlowField.IPV4_FLAGS, 2)))
                .isEqualTo("ipv4_ext src_ip=0a010203 &=ffffffff dst_ip=00000000 &=00000000"
                        + " proto=11 &=ff tos=fc &=ff ttl=40 &=ff flags=02 &=ff");
        assertThat(seen(FlowMatch.of(FlowHeader.IPV6)
                        .prefix(FlowField.IPV6_SOURCE, ipv6("fd00:1:2:3::4"), 64)
                        .prefix(FlowField.IPV6_DESTINATION, ipv6("fd77::1"), 128)
                        .field(FlowField.IPV6_FLOW_LABEL, 0xabcde)
                        .field(FlowField.IPV6_NEXT_HEADER, 6)
                        .field(FlowField.IPV6_TRAFFIC_CLASS, 1)
                        .field(FlowField.IPV6_HOP_LIMIT, 255)))
                .isEqualTo("ipv6 src_ip=fd000001000200030000000000000000 &=ffffffffffffffff0000000000000000"
                        + " dst_ip=fd770000000000000000000000000001 &=ffffffffffffffffffffffffffffffff"
                        + " flow_label=000abcde &=000fffff next_hdr=06 &=ff traffic_class=01 &=ff hop_limit=ff &=ff");
        assertThat(seen(FlowMatch.of(FlowHeader.UDP)
                        .field(FlowField.DESTINATION_PORT, 4791)
                        .field(FlowField.SOURCE_PORT, 0xc000, 0xf000)))
                .isEqualTo("udp dst_port=12b7 &=ffff src_port=c000 &=f000");
        assertThat(seen(FlowMatch.of(FlowHeader.TCP)
                        .field(FlowField.DESTINATION_PORT, 0x8000, 0x8000)
                        .field(FlowField.SOURCE_PORT, 80)))
                .isEqualTo("tcp dst_port=8000 &=8000 src_port=0050 &=ffff");
        assertThat(seen(FlowMatch.of(FlowHeader.VXLAN).field(FlowField.VXLAN_NETWORK, 0x123456)))
                .isEqualTo("vxlan tunnel_id=00123456 &=00ffffff");
        assertThat(seen(FlowMatch.of(FlowHeader.GRE)
                        .field(FlowField.GRE_FLAGS_AND_VERSION, 0x2000, 0xb007)
                        .field(FlowField.GRE_PROTOCOL, 0x6558)
                        .field(FlowField.GRE_KEY, 0xfedcba98L)))
                .isEqualTo("gre c_ks_res0_ver=2000 &=b007 protocol=6558 &=ffff key=fedcba98 &=ffffffff");
        assertThat(seen(FlowMatch.of(FlowHeader.MPLS).field(FlowField.MPLS_LABEL, 0xabcde)))
                .isEqualTo("mpls label=abcde000 &=fffff000");
        assertThat(seen(FlowMatch.of(FlowHeader.MPLS).field(FlowField.MPLS_ENTRY, 0xffffffffL, 0x1ff)))
                .isEqualTo("mpls label=000001ff &=000001ff");
        assertThat(seen(FlowMatch.of(FlowHeader.ESP)
                        .field(FlowField.ESP_PARAMETERS_INDEX, 0xfffffffeL)
                        .field(FlowField.ESP_SEQUENCE_NUMBER, 7)))
                .isEqualTo("esp spi=fffffffe &=ffffffff seq=00000007 &=ffffffff");
    }

    @Test
    void partsFollowEachOtherInOrder() {
        // A pointer behind a part of 12 bytes is not aligned, which C's parts need not be.
        try (Counters counters = Counters.create(context);
                FlowAction action = FlowAction.create(context, decrypting())) {
            assertThat(seen(
                            FlowMatch.of(FlowHeader.MPLS),
                            FlowMatch.of(FlowHeader.ETHERNET).inner().field(FlowField.ETHER_TYPE, 1),
                            FlowEffect.tag(0xabcdef),
                            FlowEffect.drop(),
                            FlowEffect.change(action),
                            FlowEffect.count(counters)))
                    .isEqualTo("mpls label=00000000 &=00000000 inner eth dst_mac=000000000000 &=000000000000"
                            + " src_mac=000000000000 &=000000000000 ether_type=0001 &=ffff vlan_tag=0000 &=0000"
                            + " tag=abcdef drop handle=" + pointer(action) + " count=" + pointer(counters));
        }
    }

    @Test
    void aRuleMayHaveAsManyPartsAsCCanCountAndNoMore() {
        FlowSpec[] most =
                Collections.nCopies(255, FlowMatch.of(FlowHeader.IPV6)).toArray(FlowSpec[]::new);
        assertThat(seen(most).split("ipv6")).hasSize(256);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> FlowRule.steering(
                        1,
                        Collections.nCopies(256, FlowMatch.of(FlowHeader.IPV6)).toArray(FlowSpec[]::new)))
                .withMessageContaining("256 is outside 0 to 255");
    }

    @Test
    void valuesThatDoNotFitAFieldAreRefused() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> FlowMatch.of(FlowHeader.UDP).field(FlowField.DESTINATION_PORT, 65536))
                .withMessageContaining("DESTINATION_PORT 0x10000")
                .withMessageContaining("16 bits");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> FlowMatch.of(FlowHeader.UDP).field(FlowField.SOURCE_PORT, -1));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> FlowMatch.of(FlowHeader.UDP).field(FlowField.SOURCE_PORT, 1, 65536));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> FlowMatch.of(FlowHeader.ETHERNET).field(FlowField.DESTINATION_MAC, new byte[5]));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> FlowMatch.of(FlowHeader.ETHERNET).field(FlowField.SOURCE_MAC, MAC, new byte[7]));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> FlowMatch.of(FlowHeader.ETHERNET).field(FlowField.VLAN, 4096));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> FlowMatch.of(FlowHeader.IPV4).field(FlowField.IPV4_PROTOCOL, 256));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> FlowMatch.of(FlowHeader.IPV4).prefix(FlowField.IPV4_SOURCE, ipv4("10.0.0.1"), 33));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> FlowMatch.of(FlowHeader.IPV6).prefix(FlowField.IPV6_SOURCE, ipv6("fd77::1"), 129));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> FlowMatch.of(FlowHeader.IPV6).field(FlowField.IPV6_FLOW_LABEL, 1 << 20));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> FlowMatch.of(FlowHeader.VXLAN).field(FlowField.VXLAN_NETWORK, 1 << 24));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> FlowMatch.of(FlowHeader.MPLS).field(FlowField.MPLS_LABEL, 1 << 20));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> FlowMatch.of(FlowHeader.GRE).field(FlowField.GRE_PROTOCOL, 1 << 16));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> FlowMatch.of(FlowHeader.TCP).field(FlowField.VLAN, 1))
                .withMessageContaining("VLAN is no field of TCP");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> FlowMatch.of(FlowHeader.IPV6).field(FlowField.IPV6_SOURCE, 1))
                .withMessageContaining("16 bytes");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> FlowMatch.of(FlowHeader.IPV4).prefix(FlowField.IPV4_SOURCE, ipv6("fd77::1"), 32));
        assertThatIllegalArgumentException().isThrownBy(() -> FlowRule.of(FlowRuleType.SNIFFER, 0));
        assertThatIllegalArgumentException().isThrownBy(() -> FlowRule.of(FlowRuleType.SNIFFER, 256));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> FlowRule.of(FlowRuleType.SNIFFER, 1).withPriority(65536));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> FlowRule.of(FlowRuleType.SNIFFER, 1).withFlags(Set.of(FlowFlag.DONT_TRAP)))
                .withMessageContaining("DONT_TRAP");
    }

    @Test
    void aFlowKeepsWhatItUsesOpen() {
        Counters counters = Counters.create(context);
        FlowAction action = FlowAction.create(context, decrypting());
        // Twice the same counters are one parent.
        Flow flow = Flow.create(
                queuePair,
                FlowRule.steering(
                        1, FlowEffect.count(counters), FlowEffect.count(counters), FlowEffect.change(action)));
        for (VerbsObject parent : List.of(counters, action, queuePair, context)) {
            assertThatIllegalStateException().isThrownBy(parent::close);
            assertThat(parent.isOpen()).isTrue();
        }
        assertThatIllegalStateException().isThrownBy(counters::close).withMessageContaining("NORMAL Flow of stub0");
        Stub.failNext("stub_destroy_flow", Errno.EBUSY);
        assertThatThrownBy(flow::close).hasMessageContaining("ibv_destroy_flow");
        assertThat(flow.isOpen()).isTrue();
        flow.close();
        flow.close();
        assertThatIllegalStateException().isThrownBy(flow::nativeAddress);
        action.close();
        counters.close();
        FlowRule stale = FlowRule.steering(1, FlowEffect.count(counters));
        assertThatIllegalStateException()
                .isThrownBy(() -> Flow.create(queuePair, stale))
                .withMessageContaining("Counters of stub0 is closed");
        assertThatIllegalStateException()
                .isThrownBy(() -> Flow.create(queuePair, FlowRule.steering(1, FlowEffect.change(action))));
        assertThatIllegalStateException().isThrownBy(() -> counters.attach(CounterKind.BYTES, 0));
        assertThatIllegalStateException().isThrownBy(() -> action.modify(decrypting()));
    }

    @Test
    void objectsOfAnotherContextAreRefused() {
        try (Context other = Verbs.device("stub0").open();
                Counters foreign = Counters.create(other);
                FlowAction foreignAction = FlowAction.create(other, decrypting());
                Flow flow = Flow.create(queuePair, FlowRule.steering(1))) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> Flow.create(queuePair, FlowRule.steering(1, FlowEffect.count(foreign))))
                    .withMessageContaining("another context");
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> Flow.create(queuePair, FlowRule.steering(1, FlowEffect.change(foreignAction))));
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> foreign.attachTo(flow, CounterKind.PACKETS, 0))
                    .withMessageContaining("another context");
        }
    }

    @Test
    void countersAreAttachedAndRead() {
        try (Counters counters = Counters.create(context)) {
            assertThatIllegalStateException()
                    .isThrownBy(() -> counters.read(false))
                    .withMessageContaining("attach");
            counters.attach(CounterKind.BYTES, 2);
            assertCalled("stub_attach_counters", 1, 2, 0, 0, counters.nativeAddress());
            assertThat(counters.read(true)).containsExactly(1000, 1001, 1002);
            assertCalled("stub_read_counters", counters.nativeAddress(), 3, 1);
            counters.attach(CounterKind.PACKETS, 0);
            assertThat(counters.read(false)).hasSize(3);
            assertCalled("stub_read_counters", counters.nativeAddress(), 3, 0);
            counters.attach(CounterKind.PACKETS, Counters.MAX_INDEX);
            assertThat(counters.read(false))
                    .containsExactly(IntStream.rangeClosed(0, Counters.MAX_INDEX)
                            .mapToLong(i -> 1000 + i)
                            .toArray());
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> counters.attach(CounterKind.PACKETS, Counters.MAX_INDEX + 1));
            assertThatIllegalArgumentException().isThrownBy(() -> counters.attach(CounterKind.PACKETS, -1));
            Stub.failNext("stub_attach_counters", Errno.EBUSY);
            assertThatThrownBy(() -> counters.attach(CounterKind.PACKETS, 1))
                    .hasMessageContaining("ibv_attach_counters_point_flow")
                    .hasMessageContaining("before the first flow");
            Stub.failNext("stub_attach_counters", Errno.EOPNOTSUPP);
            assertThatThrownBy(() -> counters.attach(CounterKind.PACKETS, 1))
                    .hasMessageContaining("this kind of counter");
            Stub.failNext("stub_read_counters", Errno.EINVAL);
            assertThatThrownBy(() -> counters.read(false))
                    .hasMessageContaining("ibv_read_counters")
                    .hasMessageContaining("EINVAL");
            Stub.failNext("stub_destroy_counters", Errno.EBUSY);
            assertThatThrownBy(counters::close).hasMessageContaining("ibv_destroy_counters");
        }
    }

    @Test
    void countersThatAreAttachedToAFlowOutliveIt() {
        Counters counters = Counters.create(context);
        Flow flow = Flow.create(queuePair, FlowRule.steering(1, FlowMatch.of(FlowHeader.TCP)));
        counters.attachTo(flow, CounterKind.PACKETS, 0);
        counters.attachTo(flow, CounterKind.BYTES, 1);
        assertCalled("stub_attach_counters", 1, 1, 0, flow.nativeAddress(), counters.nativeAddress());
        assertThatIllegalStateException().isThrownBy(counters::close).withMessageContaining("Flow");
        Stub.failNext("stub_attach_counters", Errno.EOPNOTSUPP);
        Counters refused = Counters.create(context);
        assertThatThrownBy(() -> refused.attachTo(flow, CounterKind.PACKETS, 0)).isInstanceOf(VerbsException.class);
        refused.close(); // what was refused binds nothing
        flow.close();
        assertThatIllegalStateException().isThrownBy(() -> counters.attachTo(flow, CounterKind.PACKETS, 0));
        counters.close();
    }

    private static EspParameters decrypting() {
        return EspParameters.of(
                EspAssociation.inlineCrypto(Set.of()), new EspKey(new byte[16], new byte[4], new byte[8], 16));
    }

    @Test
    void anEspActionArrivesAsGiven() throws Exception {
        byte[] key = HEX.parseHex("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
        EspKey material = new EspKey(key, HEX.parseHex("a1a2a3a4"), HEX.parseHex("b1b2b3b4b5b6b7b8"), 16);
        EspParameters parameters = new EspParameters(
                new EspAssociation(
                        0x80000001,
                        2,
                        3,
                        Set.of(EspFlag.FULL_OFFLOAD, EspFlag.TRANSPORT, EspFlag.ENCRYPT, EspFlag.ESN_NEW_WINDOW),
                        0x123456789L),
                material,
                64,
                List.of(
                        FlowMatch.of(FlowHeader.IPV4)
                                .prefix(FlowField.IPV4_SOURCE, ipv4("10.0.0.1"), 32)
                                .prefix(FlowField.IPV4_DESTINATION, ipv4("10.0.0.2"), 32),
                        FlowMatch.of(FlowHeader.UDP).field(FlowField.DESTINATION_PORT, 4500)),
                OptionalInt.of(0xfedcba98));
        try (FlowAction action = FlowAction.create(context, parameters)) {
            assertThat(Stub.text("stub_text"))
                    .isEqualTo("mask=1 esn=fedcba98 spi=80000001 seq=2 pad=3 flags=f limit=123456789"
                            + " keymat=0 algo=0 icv=16 iv=b1b2b3b4b5b6b7b8 salt=a1a2a3a4 key=" + HEX.formatHex(key)
                            + " replay=1 size=64 encap=30 val=0a0000010a000002 encap=41 val=11940000");
            action.modify(EspParameters.window(EspAssociation.inlineCrypto(Set.of(EspFlag.ESN_NEW_WINDOW)), 8));
            assertThat(Stub.text("stub_text")).isEqualTo("mask=1 esn=8 spi=0 seq=0 pad=0 flags=8 limit=0");
            action.modify(new EspParameters(null, null, 0, List.of(), OptionalInt.empty()));
            assertThat(Stub.text("stub_text")).isEqualTo("mask=0 esn=0");
            Stub.failNext("stub_modify_flow_action_esp", Errno.EINVAL);
            assertThatThrownBy(() -> action.modify(parameters))
                    .hasMessageContaining("ibv_modify_flow_action_esp")
                    .hasMessageContaining("AES-GCM key of 256 bits")
                    .hasMessageNotContaining("000102");
            Stub.failNext("stub_destroy_flow_action", Errno.EBUSY);
            assertThatThrownBy(action::close).hasMessageContaining("ibv_destroy_flow_action");
            assertThat(action.isOpen()).isTrue();
        }
        Stub.failNext("stub_create_flow_action_esp", Errno.EINVAL);
        assertThatThrownBy(() -> FlowAction.create(context, parameters))
                .hasMessageContaining("ibv_create_flow_action_esp");
    }

    @Test
    void invalidKeysAndParametersAreRefused() {
        byte[] salt = new byte[4];
        byte[] vector = new byte[8];
        assertThatIllegalArgumentException().isThrownBy(() -> new EspKey(new byte[17], salt, vector, 16));
        assertThatIllegalArgumentException().isThrownBy(() -> new EspKey(new byte[24], new byte[5], vector, 16));
        assertThatIllegalArgumentException().isThrownBy(() -> new EspKey(new byte[24], salt, new byte[7], 16));
        assertThatIllegalArgumentException().isThrownBy(() -> new EspKey(new byte[24], salt, vector, 10));
        assertThatIllegalArgumentException()
                .isThrownBy(() ->
                        FlowAction.create(context, EspParameters.window(EspAssociation.inlineCrypto(Set.of()), 1)))
                .withMessageContaining("needs an association and a key");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new EspParameters(
                        null, null, 0, Collections.nCopies(17, FlowMatch.of(FlowHeader.UDP)), OptionalInt.empty()));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new EspParameters(null, null, -1, List.of(), OptionalInt.empty()));
    }

    @Test
    void refusalsSayWhatToDo() {
        FlowRule rule = FlowRule.steering(1, FlowMatch.of(FlowHeader.TCP));
        Stub.failNext("stub_create_flow", Errno.EPERM);
        assertThatThrownBy(() -> Flow.create(queuePair, rule)).hasMessageContaining("CAP_NET_RAW");
        Stub.failNext("stub_create_flow", Errno.EINVAL);
        assertThatThrownBy(() -> Flow.create(queuePair, rule))
                .hasMessageContaining("not of RAW_PACKET or UD")
                .hasMessageContaining("TCP 00000000/00000000");
        Stub.failNext("stub_create_flow", Errno.ENXIO);
        assertThatThrownBy(() -> Flow.create(queuePair, rule))
                .hasMessageContaining("ENXIO")
                .hasMessageContaining("not switched on");
        Stub.failNext("stub_create_counters", Errno.ENOMEM);
        assertThatThrownBy(() -> Counters.create(context)).hasMessageContaining("ibv_create_counters");
    }

    @Test
    void olderProvidersAreSupported() {
        Stub.call("stub_without_later", 1);
        assertLacking();
    }

    @Test
    void aShorterContextIsNotReadBeyondItsTop() {
        // sz ends right below ibv_create_flow: the pointers above are in memory, and may not be called.
        Stub.call("stub_break_abi", 6);
        assertLacking();
    }

    private static void assertLacking() {
        try (Context older = Verbs.device("stub0").open();
                ProtectionDomain domain = older.allocateProtectionDomain();
                CompletionQueue completions = older.createCompletionQueue(8);
                QueuePair queuePair = domain.createQueuePair(QueuePairOptions.reliable(completions, SIZES))) {
            assertThatThrownBy(() -> Flow.create(queuePair, FlowRule.steering(1)))
                    .isInstanceOf(VerbsException.class)
                    .hasMessageContaining("ibv_create_flow")
                    .hasMessageContaining("EOPNOTSUPP");
            assertThatThrownBy(() -> Counters.create(older))
                    .hasMessageContaining("ibv_create_counters")
                    .hasMessageContaining("EOPNOTSUPP");
            assertThatThrownBy(() -> FlowAction.create(older, decrypting()))
                    .hasMessageContaining("ibv_create_flow_action_esp")
                    .hasMessageContaining("EOPNOTSUPP");
        }
    }

    private static void assertCalled(String function, long... arguments) {
        assertThat(Stub.text("stub_called")).isEqualTo(function);
        for (int i = 0; i < arguments.length; i++) {
            assertThat(Stub.number("stub_argument", i))
                    .as("argument " + i + " of " + function)
                    .isEqualTo(arguments[i]);
        }
    }
}
