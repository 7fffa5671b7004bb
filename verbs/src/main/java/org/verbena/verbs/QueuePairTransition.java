package org.verbena.verbs;

import static org.verbena.verbs.queue.QueuePairAttribute.ACCESS_FLAGS;
import static org.verbena.verbs.queue.QueuePairAttribute.ALT_PATH;
import static org.verbena.verbs.queue.QueuePairAttribute.AV;
import static org.verbena.verbs.queue.QueuePairAttribute.CUR_STATE;
import static org.verbena.verbs.queue.QueuePairAttribute.DEST_QPN;
import static org.verbena.verbs.queue.QueuePairAttribute.EN_SQD_ASYNC_NOTIFY;
import static org.verbena.verbs.queue.QueuePairAttribute.MAX_DEST_RD_ATOMIC;
import static org.verbena.verbs.queue.QueuePairAttribute.MAX_QP_RD_ATOMIC;
import static org.verbena.verbs.queue.QueuePairAttribute.MIN_RNR_TIMER;
import static org.verbena.verbs.queue.QueuePairAttribute.PATH_MIG_STATE;
import static org.verbena.verbs.queue.QueuePairAttribute.PATH_MTU;
import static org.verbena.verbs.queue.QueuePairAttribute.PKEY_INDEX;
import static org.verbena.verbs.queue.QueuePairAttribute.PORT;
import static org.verbena.verbs.queue.QueuePairAttribute.QKEY;
import static org.verbena.verbs.queue.QueuePairAttribute.RATE_LIMIT;
import static org.verbena.verbs.queue.QueuePairAttribute.RETRY_CNT;
import static org.verbena.verbs.queue.QueuePairAttribute.RNR_RETRY;
import static org.verbena.verbs.queue.QueuePairAttribute.RQ_PSN;
import static org.verbena.verbs.queue.QueuePairAttribute.SQ_PSN;
import static org.verbena.verbs.queue.QueuePairAttribute.STATE;
import static org.verbena.verbs.queue.QueuePairAttribute.TIMEOUT;

import java.util.EnumSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.verbena.verbs.queue.QueuePairAttribute;
import org.verbena.verbs.queue.QueuePairState;
import org.verbena.verbs.queue.QueuePairType;

/**
 * The required and allowed attributes of a transition between states of a queue pair, so that an error can name the
 * attribute; the kernel only reports EINVAL.
 *
 * <p>Source: ibv_modify_qp(3); InfiniBand Architecture Specification, volume 1, 11.2.5.2
 *
 * @param required attributes that must be there, STATE apart
 * @param optional attributes that may be there
 */
record QueuePairTransition(Set<QueuePairAttribute> required, Set<QueuePairAttribute> optional) {

    private static final QueuePairTransition FREE = allow();

    private static QueuePairTransition need(QueuePairAttribute... required) {
        return new QueuePairTransition(Set.of(required), Set.of());
    }

    private static QueuePairTransition allow(QueuePairAttribute... optional) {
        return new QueuePairTransition(Set.of(), Set.of(optional));
    }

    private QueuePairTransition and(QueuePairAttribute... allowed) {
        return new QueuePairTransition(required, Set.of(allowed));
    }

    /**
     * Looks a step up.
     *
     * @param type of the queue pair
     * @param from where it is
     * @param to where it shall go
     * @return what the step takes, or null if there is none
     */
    static @Nullable QueuePairTransition find(QueuePairType type, QueuePairState from, QueuePairState to) {
        return switch (to) {
            case RESET, ERR -> FREE;
            case INIT -> from == QueuePairState.RESET || from == QueuePairState.INIT ? toInit(type, from) : null;
            case RTR -> from == QueuePairState.INIT ? toReadyToReceive(type) : null;
            case RTS ->
                switch (from) {
                    case RTR -> toReadyToSend(type);
                    case RTS, SQD, SQE -> whileReadyToSend(type, from);
                    default -> null;
                };
            case SQD ->
                switch (from) {
                    case RTS -> allow(EN_SQD_ASYNC_NOTIFY);
                    case SQD -> whileDrained(type);
                    default -> null;
                };
            case SQE, UNKNOWN -> null;
        };
    }

    private static QueuePairTransition toInit(QueuePairType type, QueuePairState from) {
        QueuePairTransition needs = switch (type) {
            case UD -> need(PKEY_INDEX, PORT, QKEY);
            case RAW_PACKET -> need(PORT);
            case RC, UC, XRC_SEND, XRC_RECV -> need(PKEY_INDEX, PORT, ACCESS_FLAGS);
            case DRIVER -> allow(QueuePairAttribute.values());
        };
        return from == QueuePairState.RESET ? needs : allow(needs.required.toArray(QueuePairAttribute[]::new));
    }

    private static QueuePairTransition toReadyToReceive(QueuePairType type) {
        return switch (type) {
            case UD -> allow(PKEY_INDEX, QKEY);
            case RAW_PACKET -> FREE;
            case UC, XRC_SEND -> need(AV, PATH_MTU, DEST_QPN, RQ_PSN).and(ALT_PATH, ACCESS_FLAGS, PKEY_INDEX);
            case RC, XRC_RECV ->
                need(AV, PATH_MTU, DEST_QPN, RQ_PSN, MAX_DEST_RD_ATOMIC, MIN_RNR_TIMER)
                        .and(ALT_PATH, ACCESS_FLAGS, PKEY_INDEX);
            case DRIVER -> allow(QueuePairAttribute.values());
        };
    }

    private static QueuePairTransition toReadyToSend(QueuePairType type) {
        return switch (type) {
            case UD -> need(SQ_PSN).and(CUR_STATE, QKEY);
            case RAW_PACKET -> allow(RATE_LIMIT);
            case UC -> need(SQ_PSN).and(CUR_STATE, ALT_PATH, ACCESS_FLAGS, PATH_MIG_STATE);
            case RC ->
                need(TIMEOUT, RETRY_CNT, RNR_RETRY, SQ_PSN, MAX_QP_RD_ATOMIC)
                        .and(CUR_STATE, ALT_PATH, ACCESS_FLAGS, MIN_RNR_TIMER, PATH_MIG_STATE);
            case XRC_SEND ->
                need(TIMEOUT, RETRY_CNT, RNR_RETRY, SQ_PSN, MAX_QP_RD_ATOMIC)
                        .and(CUR_STATE, ALT_PATH, ACCESS_FLAGS, PATH_MIG_STATE);
            case XRC_RECV ->
                need(TIMEOUT, SQ_PSN).and(CUR_STATE, ALT_PATH, ACCESS_FLAGS, MIN_RNR_TIMER, PATH_MIG_STATE);
            case DRIVER -> allow(QueuePairAttribute.values());
        };
    }

    private static @Nullable QueuePairTransition whileReadyToSend(QueuePairType type, QueuePairState from) {
        if (from == QueuePairState.SQE && type != QueuePairType.UD && type != QueuePairType.UC) {
            return null;
        }
        return switch (type) {
            case UD -> allow(CUR_STATE, QKEY);
            case RAW_PACKET -> allow(RATE_LIMIT);
            case UC, XRC_SEND ->
                from == QueuePairState.SQE
                        ? allow(CUR_STATE, ACCESS_FLAGS)
                        : allow(CUR_STATE, ACCESS_FLAGS, ALT_PATH, PATH_MIG_STATE);
            case RC, XRC_RECV -> allow(CUR_STATE, ACCESS_FLAGS, ALT_PATH, PATH_MIG_STATE, MIN_RNR_TIMER);
            case DRIVER -> allow(QueuePairAttribute.values());
        };
    }

    private static QueuePairTransition whileDrained(QueuePairType type) {
        return switch (type) {
            case UD -> allow(PKEY_INDEX, QKEY);
            case RAW_PACKET -> FREE;
            case UC -> allow(AV, ALT_PATH, ACCESS_FLAGS, PKEY_INDEX, PATH_MIG_STATE);
            case RC ->
                allow(
                        PORT,
                        AV,
                        TIMEOUT,
                        RETRY_CNT,
                        RNR_RETRY,
                        MAX_QP_RD_ATOMIC,
                        MAX_DEST_RD_ATOMIC,
                        ALT_PATH,
                        ACCESS_FLAGS,
                        PKEY_INDEX,
                        MIN_RNR_TIMER,
                        PATH_MIG_STATE);
            case XRC_SEND ->
                allow(
                        PORT,
                        AV,
                        TIMEOUT,
                        RETRY_CNT,
                        RNR_RETRY,
                        MAX_QP_RD_ATOMIC,
                        ALT_PATH,
                        ACCESS_FLAGS,
                        PKEY_INDEX,
                        PATH_MIG_STATE);
            case XRC_RECV ->
                allow(
                        PORT,
                        AV,
                        TIMEOUT,
                        MAX_DEST_RD_ATOMIC,
                        ALT_PATH,
                        ACCESS_FLAGS,
                        PKEY_INDEX,
                        MIN_RNR_TIMER,
                        PATH_MIG_STATE);
            case DRIVER -> allow(QueuePairAttribute.values());
        };
    }

    /**
     * Refuses an invalid step, and names the attributes that are missing or not allowed.
     *
     * @param type of the queue pair
     * @param from where it is
     * @param attributes the attributes to query
     * @throws IllegalArgumentException there is no such step, or attributes are missing or not allowed in it
     */
    static void check(QueuePairType type, QueuePairState from, QueuePairAttributes attributes) {
        Set<QueuePairAttribute> present = attributes.present();
        QueuePairState to = present.contains(STATE) ? attributes.state() : from;
        String step = type + " queue pair " + from + " to " + to;
        QueuePairTransition transition = find(type, from, to);
        if (transition == null) {
            throw new IllegalArgumentException(
                    "there is no transition of an " + step + "; see QueuePair for the states");
        }
        EnumSet<QueuePairAttribute> missing = EnumSet.noneOf(QueuePairAttribute.class);
        missing.addAll(transition.required);
        missing.removeAll(present);
        if (!missing.isEmpty()) {
            throw new IllegalArgumentException("an " + step + " also needs " + missing);
        }
        EnumSet<QueuePairAttribute> tooMany = EnumSet.noneOf(QueuePairAttribute.class);
        tooMany.addAll(present);
        tooMany.remove(STATE);
        tooMany.remove(QueuePairAttribute.CAP); // devices with RESIZE_MAX_WR take it; the others say so themselves
        tooMany.removeAll(transition.required);
        tooMany.removeAll(transition.optional);
        if (!tooMany.isEmpty()) {
            throw new IllegalArgumentException("an " + step + " does not accept " + tooMany);
        }
    }
}
