package org.verbena.it.guest;

import org.junit.jupiter.engine.JupiterTestEngine;
import org.junit.platform.launcher.Launcher;
import org.junit.platform.launcher.core.LauncherConfig;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * JUnit's launcher with Jupiter and nothing that registers itself: not the lab's engine, nor the build tool's
 * listeners.
 */
public final class Jupiter {
    /** The first segment of Jupiter's unique ids. */
    static final String ENGINE_ID = "junit-jupiter";

    private Jupiter() {}

    /** A launcher that nothing else configures. */
    public static Launcher launcher() {
        return LauncherFactory.create(LauncherConfig.builder()
                .enableTestEngineAutoRegistration(false)
                .addTestEngines(new JupiterTestEngine())
                .enableTestExecutionListenerAutoRegistration(false)
                .enableLauncherSessionListenerAutoRegistration(false)
                .enableLauncherDiscoveryListenerAutoRegistration(false)
                .enablePostDiscoveryFilterAutoRegistration(false)
                .build());
    }
}
