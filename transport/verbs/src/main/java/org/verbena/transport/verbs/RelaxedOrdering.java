package org.verbena.transport.verbs;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.ProviderException;
import org.verbena.verbs.memory.AccessFlag;

/**
 * Which memory adapters may write in another order than packets arrived. PCI Express then does not delay a write for
 * earlier ones; otherwise some processors reach only a part of the line rate. A completion on this side still comes
 * after all of its data, so messages and this side's reads do not see the difference. A peer's write has no completion
 * here: of two to the same place, of which the second was posted when the first had completed, the first may land last
 * (ibv_reg_mr(3)). So memory that peers may write is not for it, unless the program wants that. Memory for atomics
 * never is, since those have to see each other's writes; UCX orders it as well.
 *
 * <p>Decided as UCX does (9466d104, {@code src/ucs/arch/cpu.h}, ucs_cpu_model_prefer_relaxed_order): for AMD's EPYC
 * from Naples to Turin. Its families are in {@code src/ucs/arch/x86_64/cpu.c}.
 */
enum RelaxedOrdering {
    /** None. */
    OFF,

    /** What only this side's operations and messages write. */
    ON,

    /** What peers may write, too: their programs must not write twice to one place without a message between. */
    ALL;

    private static final Logger LOG = LoggerFactory.getLogger(RelaxedOrdering.class);

    /** {@code off}, {@code on}, {@code all}, or {@code auto} by processor, which is the default. */
    static final String SETTING = "org.verbena.transport.verbs.relaxedOrdering";

    private static final Path CPU_INFO = Path.of("/proc/cpuinfo");

    /** AMD's Zen 1 and 2, Zen 3 and 4, Zen 5: the families of EPYC. */
    private static final Set<String> EPYC_FAMILIES = Set.of("23", "25", "26");

    /** What is wanted here. */
    static RelaxedOrdering wanted() {
        List<String> lines = List.of();
        try {
            lines = Files.readAllLines(CPU_INFO);
        } catch (IOException unknown) {
            LOG.debug("{} cannot be read, so memory is written in order", CPU_INFO, unknown);
        }
        return wanted(System.getProperty(SETTING, "auto"), lines);
    }

    /**
     * Decides.
     *
     * @param setting of {@link #SETTING}
     * @param cpuInfo lines of {@code /proc/cpuinfo}
     * @throws ProviderException the setting is none of the four
     */
    static RelaxedOrdering wanted(String setting, List<String> cpuInfo) {
        return switch (setting) {
            case "all" -> ALL;
            case "on" -> ON;
            case "off" -> OFF;
            case "auto" ->
                value(cpuInfo, "vendor_id").equals("AuthenticAMD")
                                && EPYC_FAMILIES.contains(value(cpuInfo, "cpu family"))
                        ? ON
                        : OFF;
            default -> throw new ProviderException(SETTING + " is off, on, all or auto, not " + setting);
        };
    }

    /** Whether memory with these rights, its windows' included, may be written in any order. */
    boolean covers(Set<AccessFlag> rights) {
        return this != OFF
                && !rights.contains(AccessFlag.REMOTE_ATOMIC)
                && (this == ALL || !rights.contains(AccessFlag.REMOTE_WRITE));
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
