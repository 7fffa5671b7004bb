package org.verbena.doctor;

import java.util.List;

/**
 * All that was found.
 *
 * @param findings in the order of the checks; unmodifiable
 */
public record Diagnosis(List<Finding> findings) {

    /** Copies the list. */
    public Diagnosis {
        findings = List.copyOf(findings);
    }

    /**
     * The worst verdict.
     *
     * @return {@link Verdict#OK} if there are no findings
     */
    public Verdict worst() {
        return findings.stream().map(Finding::verdict).max(Verdict::compareTo).orElse(Verdict.OK);
    }

    /**
     * The whole in one sentence that a person can act on.
     *
     * @return the first failure with what to do, else the first warning, else that all is well
     */
    public String summary() {
        for (Verdict verdict : List.of(Verdict.FAILURE, Verdict.WARNING)) {
            List<Finding> bad = findings.stream()
                    .filter(finding -> finding.verdict() == verdict)
                    .toList();
            if (!bad.isEmpty()) {
                Finding first = bad.getFirst();
                return (verdict == Verdict.FAILURE ? "It does not work: " : "It works, with a warning: ")
                        + first.check() + ": " + first.evidence()
                        + (first.remedy().isEmpty() ? "" : ". What to do: " + first.remedy())
                        + (bad.size() == 1 ? "" : " (and " + (bad.size() - 1) + " more)");
            }
        }
        return "All is well.";
    }
}
