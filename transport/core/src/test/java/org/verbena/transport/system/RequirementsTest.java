package org.verbena.transport.system;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.URL;
import java.net.URLClassLoader;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What the JVM and the class path must have; programs without it are in the module it. */
class RequirementsTest {

    @ParameterizedTest
    @ValueSource(strings = {"25+36-LTS", "25.0.1+8-LTS", "25.0.2+10"})
    void warnsOfReleasesThatMovePinnedArrays(String version) {
        assertThat(Requirements.warning(Runtime.Version.parse(version))).contains("25.0.3", "JDK-8377811");
    }

    @ParameterizedTest
    @ValueSource(strings = {"25.0.3+9-LTS", "25.0.10+7", "25.1", "26+35", "27-ea"})
    void isSilentOfOthers(String version) {
        assertThat(Requirements.warning(Runtime.Version.parse(version))).isNull();
    }

    @Test
    void allIsThereInTheBuildsOwnJvm() {
        assertThat(Requirements.unmet()).isNull();
        assertThat(Requirements.nettyVersion()).startsWith("4.2.");
    }

    @ParameterizedTest
    @ValueSource(strings = {"4.1.128.Final", "3.10.6.Final", "4.2.0.Final", "4.2.9.Final", "4.2.10.Final"})
    void refusesNettyThatIsTooOld(String version) {
        assertThat(Requirements.isTooOld(version)).isTrue();
    }

    @ParameterizedTest
    @ValueSource(strings = {"4.2.11.Final", "4.2.20.Final", "4.2.100.Final", "4.3.0.Final", "5.0.0.Alpha1"})
    void acceptsNettyFromItsLeastVersionOn(String version) {
        assertThat(Requirements.isTooOld(version)).isFalse();
    }

    @Test
    void namesAJarThatIsMissing() throws Exception {
        try (URLClassLoader empty = new URLClassLoader(new URL[0], null)) {
            assertThat(Requirements.unmetNetty(empty)).contains("netty-common");
        }
    }
}
