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

    @Test
    void namesAJarThatIsMissing() throws Exception {
        try (URLClassLoader empty = new URLClassLoader(new URL[0], null)) {
            assertThat(Requirements.unmetNetty(empty)).contains("netty-common");
        }
    }
}
