package org.verbena.doctor;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * Whether a provider works on this machine, according to its traffic.
 *
 * @param provider its name: {@code verbs}, {@code soft} or {@code shm}
 * @param verdict {@link Verdict#OK} if it works, {@link Verdict#WARNING} if it works on some devices only, {@link
 *     Verdict#SKIPPED} if the machine is not equipped for it, {@link Verdict#FAILURE} if it does not work
 * @param evidence what was seen
 * @param remedy what to do, empty if there is nothing to do or the evidence says it
 */
public record ProviderVerdict(String provider, Verdict verdict, String evidence, String remedy) {
    static final String VERBS = "verbs";

    static final String SOFT = "soft";
    static final String SHM = "shm";

    private static final List<String> SOFTWARE = List.of(SOFT, SHM);

    /** Refuses components that are null. */
    public ProviderVerdict {
        Objects.requireNonNull(provider, "provider");
        Objects.requireNonNull(verdict, "verdict");
        Objects.requireNonNull(evidence, "evidence");
        Objects.requireNonNull(remedy, "remedy");
    }

    /**
     * Sums up the findings.
     *
     * @param requirements what all providers need
     * @param ofDevices findings that explain why there was no traffic on devices
     * @param all findings, those of the traffic included
     */
    static List<ProviderVerdict> of(Finding requirements, List<Finding> ofDevices, List<Finding> all) {
        List<ProviderVerdict> verdicts = new ArrayList<>();
        List<Finding> verbs = traffic(VERBS, all);
        verdicts.add(verbs.isEmpty() ? withoutTraffic(VERBS, ofDevices) : sum(VERBS, verbs));
        for (String provider : SOFTWARE) {
            List<Finding> seen = traffic(provider, all);
            verdicts.add(seen.isEmpty() ? withoutTraffic(provider, List.of(requirements)) : sum(provider, seen));
        }
        return List.copyOf(verdicts);
    }

    private static List<Finding> traffic(String provider, List<Finding> all) {
        return all.stream()
                .filter(finding -> finding.check().startsWith(TrafficChecks.loopbackOn(provider)))
                .toList();
    }

    private static ProviderVerdict sum(String provider, List<Finding> traffic) {
        List<Finding> failed = traffic.stream()
                .filter(finding -> finding.verdict() != Verdict.OK)
                .toList();
        if (failed.isEmpty()) {
            return new ProviderVerdict(provider, Verdict.OK, traffic.getFirst().evidence(), "");
        }
        Finding first = failed.getFirst();
        return new ProviderVerdict(
                provider,
                failed.size() < traffic.size()
                        ? Verdict.WARNING
                        : first.verdict() == Verdict.SKIPPED ? Verdict.SKIPPED : Verdict.FAILURE,
                first.check() + ": " + first.evidence(),
                first.remedy());
    }

    /** The worst of the earlier findings, since no traffic was tried. */
    private static ProviderVerdict withoutTraffic(String provider, List<Finding> before) {
        Finding why = before.stream()
                .filter(finding -> finding.verdict() == Verdict.FAILURE)
                .findFirst()
                .or(() -> before.stream()
                        .filter(finding -> finding.verdict() == Verdict.SKIPPED
                                && !finding.remedy().isEmpty())
                        .findFirst())
                .orElse(Finding.skipped("devices", "no address of this machine is on one that is up"));
        return new ProviderVerdict(provider, why.verdict(), why.check() + ": " + why.evidence(), why.remedy());
    }

    /** In a sentence: {@code soft works}. */
    String brief() {
        return provider
                + switch (verdict) {
                    case OK -> " works";
                    case WARNING -> " works, but not everywhere";
                    case SKIPPED -> " is not available";
                    case FAILURE -> " does not work";
                };
    }
}
