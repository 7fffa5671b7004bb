package org.verbena.it.docs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** {@code verbena-bom} repeats what it does not inherit from the parent: it is the same. */
class BomTest {
    /** Programs, not libraries. */
    private static final List<String> NOT_PUBLISHED = List.of(
            "verbena-flight", "verbena-samples", "verbena-tools", "verbena-bench", "verbena-it", "verbena-times");

    private final Path root = SnippetsTest.root();
    private final Pom parent;
    private final Pom bom;

    BomTest() throws IOException {
        parent = Pom.of(root.resolve("pom.xml"));
        bom = Pom.of(root.resolve("bom/pom.xml"));
    }

    @Test
    void namesEveryLibraryOfThisVersion() throws IOException {
        List<String> libraries = new ArrayList<>();
        for (String module : parent.all("modules/module")) {
            String artifact = Pom.of(root.resolve(module).resolve("pom.xml")).get("artifactId");
            if (!artifact.equals("verbena-bom") && !NOT_PUBLISHED.contains(artifact)) {
                libraries.add(artifact);
            }
        }
        String managed = "dependencyManagement/dependencies/dependency[groupId='org.verbena']";
        assertThat(bom.all(managed + "/artifactId")).containsExactlyInAnyOrderElementsOf(libraries);
        assertThat(bom.get("version")).isEqualTo(parent.get("version"));
        assertThat(bom.all(managed + "/version")).containsOnly(parent.get("version"));
    }

    @Test
    void importsTheNettyAndGrpcThatVerbenaIsBuiltWith() {
        for (String artifact : List.of("netty-bom", "grpc-bom")) {
            String version = "dependencyManagement/dependencies/dependency[artifactId='" + artifact
                    + "' and scope='import']/version";
            assertThat(bom.get(version)).as(artifact).isNotEmpty().isEqualTo(parent.get(version));
        }
    }

    /** The BOM inherits none of it, and all others do but name and description. */
    @Test
    void haveWhatMavenCentralAsksFor() throws IOException {
        for (Pom inherited : List.of(parent, bom)) {
            for (String path :
                    List.of("url", "licenses/license/name", "developers/developer/name", "scm/connection", "scm/url")) {
                assertThat(inherited.get(path)).as(path).isNotEmpty();
            }
        }
        for (String module : parent.all("modules/module")) {
            Pom pom = Pom.of(root.resolve(module).resolve("pom.xml"));
            assertThat(pom.get("name")).as(module).isNotEmpty();
            assertThat(pom.get("description")).as(module).isNotEmpty();
            assertThat(pom.get("properties/maven.deploy.skip").equals("true"))
                    .as(module + " stays here")
                    .isEqualTo(NOT_PUBLISHED.contains(pom.get("artifactId")));
        }
    }

    /** {@code -Pcompatibility} compares with the newest release that the changelog has. */
    @Test
    void knowsItsLastRelease() throws IOException {
        Matcher release = Pattern.compile("^## \\[(\\d[^]]*)]", Pattern.MULTILINE)
                .matcher(Files.readString(root.resolve("CHANGELOG.md")));
        boolean released = release.find();
        assertThat(parent.get("properties/last.release")).isEqualTo(released ? release.group(1) : "none");
        assertThat(parent.get("properties/japicmp.skip")).isEqualTo(String.valueOf(!released));
    }

    @Test
    void bringsNoVersionsBesides() {
        assertThat(bom.get("parent")).isEmpty();
        assertThat(bom.all("dependencyManagement/dependencies/dependency[groupId!='org.verbena']/artifactId"))
                .containsExactlyInAnyOrder("netty-bom", "grpc-bom");
    }
}
