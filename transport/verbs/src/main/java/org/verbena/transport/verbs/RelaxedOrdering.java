package org.verbena.transport.verbs;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.ProviderException;

/**
 * Whether adapters may write to memory in another order than packets arrived. PCI Express then does not delay a write
 * for earlier ones; otherwise some processors reach only a part of the line rate. A completion still comes after all of
 * its data: only a program that polls memory for a peer's data sees the difference.
 *
 * <p>Decided as UCX does (9466d104, {@code src/ucs/arch/cpu.h}, ucs_cpu_model_prefer_relaxed_order): for AMD's EPYC
 * from Naples to Turin. Its families are in {@code src/ucs/arch/x86_64/cpu.c}.
 */
final class RelaxedOrdering {
    private static final Logger LOG = LoggerFactory.getLogger(RelaxedOrdering.class);

    /** {@code on}, {@code off}, or {@code auto} by processor, which is the default. */
    static final String SETTING = "org.verbena.transport.verbs.relaxedOrdering";

    private static final Path CPU_INFO = Path.of("/proc/cpuinfo");

    /** AMD's Zen 1 and 2, Zen 3 and 4, Zen 5: the families of EPYC. */
    private static final Set<String> EPYC_FAMILIES = Set.of("23", "25", "26");

    private RelaxedOrdering() {}

    /** Whether it is wanted here. */
    static boolean isWanted() {
        List<String> lines = List.of();
        try {
            lines = Files.readAllLines(CPU_INFO);
        } catch (IOException unknown) {
            LOG.debug("{} cannot be read, so memory is written in order", CPU_INFO, unknown);
        }
        return isWanted(System.getProperty(SETTING, "auto"), lines);
    }

    /**
     * Decides.
     *
     * @param setting of {@link #SETTING}
     * @param cpuInfo lines of {@code /proc/cpuinfo}
     * @throws ProviderException the setting is none of the three
     */
    static boolean isWanted(String setting, List<String> cpuInfo) {
        return switch (setting) {
            case "on" -> true;
            case "off" -> false;
            case "auto" ->
                value(cpuInfo, "vendor_id").equals("AuthenticAMD")
                        && EPYC_FAMILIES.contains(value(cpuInfo, "cpu family"));
            default -> throw new ProviderException(SETTING + " is on, off or auto, not " + setting);
        };
    }

    private static String value(List<String> cpuInfo, String key) {
        for (String line : cpuInfo) {
            int colon = line.indexOf(':');
            if (colon > 0 && line.substring(0, colon).strip().equals(key)) {
                return line.substring(colon + 1).strip();
            }
        }
        return "";
    }
}
