package org.verbena.doctor;

import org.verbena.transport.system.Requirements;
import org.verbena.verbs.Verbs;

/** The JVM and Netty: whether they are new enough, and whether Verbena may call native functions. */
final class JvmCheck {
    static final String NAME = "JVM";
    static final String REQUIREMENTS = "requirements";

    /** The first release that Verbena's class files run on. */
    private static final int MIN_RELEASE = 25;

    private JvmCheck() {}

    /** Whether Verbena runs on a version of Java. */
    static Finding check(Runtime.Version version) {
        String evidence =
                "Java " + version + ", " + System.getProperty("os.name") + " " + System.getProperty("os.arch");
        if (version.feature() < MIN_RELEASE) {
            return Finding.failure(NAME, evidence, "run on a JDK " + MIN_RELEASE + " or newer");
        }
        String fault = Requirements.warning(version);
        if (fault != null) {
            return Finding.warning(NAME, evidence, fault);
        }
        Module bindings = Verbs.class.getModule();
        if (!bindings.isNativeAccessEnabled()) {
            String module = bindings.isNamed()
                    ? "org.verbena.transport,org.verbena.transport.shm,org.verbena.verbs,org.verbena.cm"
                    : "ALL-UNNAMED";
            return Finding.warning(
                    NAME,
                    evidence + "; native access was not enabled, which a later JDK will refuse",
                    "start it with --enable-native-access=" + module);
        }
        return Finding.ok(NAME, evidence + ", native access enabled");
    }

    /** Whether Netty is new enough and native access is allowed: Verbena needs both. */
    static Finding requirements() {
        String unmet = Requirements.unmet();
        return unmet == null
                ? Finding.ok(REQUIREMENTS, "Netty " + Requirements.nettyVersion() + ", native access not denied")
                : Finding.failure(REQUIREMENTS, unmet, "");
    }
}
