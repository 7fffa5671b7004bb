package org.verbena.it.environment;

import org.verbena.doctor.Doctor;

/** The program that is run: what the doctor finds. */
public final class Diagnose {
    private Diagnose() {}

    /** Prints a line for each finding. */
    public static void main(String[] none) {
        new Doctor()
                .onFinding(finding ->
                        System.out.println(finding.verdict() + " " + finding.check() + ": " + finding.evidence()))
                .examine();
        System.exit(0);
    }
}
