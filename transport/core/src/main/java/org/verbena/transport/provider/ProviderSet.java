package org.verbena.transport.provider;

import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ProviderUnavailableException;
import org.verbena.transport.spi.RdmaProvider;

/**
 * The providers that a server listens with, all on one address and port. A client uses the first, unless it connects by
 * a ladder.
 *
 * <p>A text selects them: names joined by {@code +}, in the order in which the server binds. {@code verbs+soft} are
 * these two; {@code auto+soft} is what {@link ProviderChoice#AUTO} picks, and soft; {@code auto} includes the providers
 * that {@linkplain RdmaProvider#joinsAuto join} it; {@link #ALL} stands for every provider that can work here and
 * serves the address. What is named, or picked by {@code auto}, is required: the server listens with it or not at all.
 * What {@code all} and {@code auto} add is not: a server that cannot listen with one of those logs why and continues
 * without it. {@link #LADDER} selects the same as {@code all}, for clients that connect by a ladder.
 *
 * @param choices one or more, each of another provider
 * @param required the names of those that must listen
 * @param isLadder whether clients connect by a ladder of them, unless their program chooses otherwise
 */
public record ProviderSet(List<ProviderChoice> choices, Set<String> required, boolean isLadder) {

    /** Every provider that can work here and serves the address. */
    public static final String ALL = "all";

    /**
     * What {@link #ALL} selects, for programs whose clients connect with the best provider that their server has as
     * well.
     */
    public static final String LADDER = "ladder";

    private static final char AND = '+';

    /** Copies both, and checks that there are choices, each of another provider. */
    public ProviderSet {
        choices = List.copyOf(choices);
        required = Set.copyOf(required);
        if (choices.isEmpty()) {
            throw new IllegalArgumentException("a set of providers needs at least one");
        }
        long distinct =
                choices.stream().map(ProviderChoice::provider).distinct().count();
        if (distinct < choices.size()) {
            throw new IllegalArgumentException("a provider is in the set more than once: " + choices);
        }
    }

    /**
     * Providers whose clients use the first.
     *
     * @param choices one or more, each of another provider
     * @param required the names of those that must listen
     */
    public ProviderSet(List<ProviderChoice> choices, Set<String> required) {
        this(choices, required, false);
    }

    /**
     * One provider, which is required.
     *
     * @param choice the provider
     * @return the set
     */
    public static ProviderSet of(ProviderChoice choice) {
        return new ProviderSet(List.of(choice), Set.of(choice.provider().name()));
    }

    /**
     * Chooses among the providers of this process.
     *
     * @param names as the class describes
     * @param address the address that {@code auto} and {@link #ALL} must serve: resolved, or null for any
     * @return the set; each choice is logged at INFO the first time that its provider is chosen
     * @throws ProviderUnavailableException a provider that was named cannot work here, or there is none
     */
    public static ProviderSet choose(String names, @Nullable InetSocketAddress address) {
        ProviderSet chosen = choose(names, address, ProviderChoice.installed());
        chosen.choices.forEach(ProviderChoice::log);
        return chosen;
    }

    static ProviderSet choose(String names, @Nullable InetSocketAddress address, List<RdmaProvider> providers) {
        List<ProviderChoice> chosen = new ArrayList<>();
        Set<String> required = new TreeSet<>();
        boolean isLadder = false;
        for (String name : split(names)) {
            isLadder |= name.equals(LADDER);
            if (name.equals(ALL) || name.equals(LADDER)) {
                ProviderChoice.allThatServe(address, providers).forEach(choice -> add(choice, chosen));
            } else {
                ProviderChoice choice = ProviderChoice.choose(name, address, providers);
                add(choice, chosen);
                required.add(choice.provider().name());
                if (name.equals(ProviderChoice.AUTO)) {
                    ProviderChoice.allThatServe(address, providers).stream()
                            .filter(each -> each.provider().joinsAuto())
                            .forEach(each -> add(each, chosen));
                }
            }
        }
        return new ProviderSet(chosen, required, isLadder);
    }

    /** Whether a text selects more than a provider's name or {@code auto} does. */
    static boolean isSet(String names) {
        return names.equals(ALL) || names.equals(LADDER) || names.indexOf(AND) >= 0;
    }

    private static List<String> split(String names) {
        List<String> parts = new ArrayList<>();
        int from = 0;
        for (int and = names.indexOf(AND); and >= 0; and = names.indexOf(AND, from)) {
            parts.add(names.substring(from, and).strip());
            from = and + 1;
        }
        parts.add(names.substring(from).strip());
        return parts;
    }

    private static void add(ProviderChoice choice, List<ProviderChoice> to) {
        if (to.stream().noneMatch(present -> present.provider().equals(choice.provider()))) {
            to.add(choice);
        }
    }

    /**
     * The one that clients use.
     *
     * @return the first choice
     */
    public ProviderChoice first() {
        return choices.getFirst();
    }

    /**
     * Whether a server has to listen with a provider.
     *
     * @param choice of this set
     * @return false if it may do without
     */
    public boolean isRequired(ProviderChoice choice) {
        return required.contains(choice.provider().name());
    }

    /**
     * The names of the providers.
     *
     * @return joined by {@code +}, for example {@code verbs+soft}
     */
    public String names() {
        return String.join(
                String.valueOf(AND),
                choices.stream().map(choice -> choice.provider().name()).toList());
    }
}
