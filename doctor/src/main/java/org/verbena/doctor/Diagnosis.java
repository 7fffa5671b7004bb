package org.verbena.doctor;

import java.util.List;
import java.util.stream.Collectors;

/**
 * The result of an examination.
 *
 * @param findings in the order of the checks; unmodifiable
 * @param providers the verdict for each provider; unmodifiable
 */
public record Diagnosis(List<Finding> findings, List<ProviderVerdict> providers) {

    /** Copies the lists. */
    public Diagnosis {
        findings = List.copyOf(findings);
        providers = List.copyOf(providers);
    }

    /**
     * Returns the worst verdict of the findings.
     *
     * @return {@link Verdict#OK} if there are no findings
     */
    public Verdict worst() {
        return findings.stream().map(Finding::verdict).max(Verdict::compareTo).orElse(Verdict.OK);
    }

    /**
     * Returns a summary in sentences that a person can act on.
     *
     * @return which providers work; the first failure with what to do, else the first warning, else what to do for the
     *     first provider that is not available
     */
    public String summary() {
        String works = providers.stream().map(ProviderVerdict::brief).collect(Collectors.joining(", "));
        String prefix = works.isEmpty() ? "" : works + ". ";
        for (Verdict verdict : List.of(Verdict.FAILURE, Verdict.WARNING)) {
            List<Finding> bad = findings.stream()
                    .filter(finding -> finding.verdict() == verdict)
                    .toList();
            if (!bad.isEmpty()) {
                Finding first = bad.getFirst();
                return prefix + (verdict == Verdict.FAILURE ? "Failed: " : "With a warning: ") + first.check() + ": "
                        + first.evidence() + whatToDo(first.remedy())
                        + (bad.size() == 1 ? "" : " (and " + (bad.size() - 1) + " more)");
            }
        }
        return providers.stream()
                .filter(provider -> provider.verdict() == Verdict.SKIPPED)
                .findFirst()
                .map(missing ->
                        prefix + "For " + missing.provider() + ": " + missing.evidence() + whatToDo(missing.remedy()))
                .orElse(prefix + "All is well.");
    }

    private static String whatToDo(String remedy) {
        return remedy.isEmpty() ? "" : ". What to do: " + remedy;
    }
}
