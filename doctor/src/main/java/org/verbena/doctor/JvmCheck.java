package org.verbena.doctor;

import org.verbena.verbs.Verbs;

/** The JVM: whether it is new enough, and whether Verbena may call native functions. */
final class JvmCheck {
    static final String NAME = "JVM";

    /** The first release that Verbena's class files run on. */
    private static final int LEAST_RELEASE = 25;

    private JvmCheck() {}

    static Finding check() {
        String evidence = "Java " + Runtime.version() + ", " + System.getProperty("os.name") + " "
                + System.getProperty("os.arch");
        if (Runtime.version().feature() < LEAST_RELEASE) {
            return Finding.failure(NAME, evidence, "run on a JDK " + LEAST_RELEASE + " or newer");
        }
        Module bindings = Verbs.class.getModule();
        if (!bindings.isNativeAccessEnabled()) {
            String module =
                    bindings.isNamed() ? "org.verbena.verbs,org.verbena.cm,org.verbena.transport.verbs" : "ALL-UNNAMED";
            return Finding.warning(
                    NAME,
                    evidence + "; native access was not enabled, which a later JDK will refuse",
                    "start it with --enable-native-access=" + module);
        }
        return Finding.ok(NAME, evidence + ", native access enabled");
    }
}
