package org.verbena.transport.provider;

import java.lang.reflect.InvocationTargetException;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.ProviderUnavailableException;
import org.verbena.transport.spi.RdmaProvider;
import org.verbena.transport.spi.Secrets;
import org.verbena.transport.system.Requirements;

/**
 * The provider in use, and why it was chosen. {@code auto} chooses the available provider of the lowest rank that
 * serves the address; a client first asks those that {@linkplain RdmaProvider#joinsAuto join} that choice. A provider
 * that is chosen by name is used or the call fails: nothing replaces it.
 *
 * @param provider the provider
 * @param reason why it was chosen, as a phrase
 */
public record ProviderChoice(RdmaProvider provider, String reason) {

    /** Lets {@link #choose} decide. */
    public static final String AUTO = "auto";

    /**
     * The system property that names a provider where the program does not: {@code auto}, {@code verbs}, {@code soft};
     * or several for servers, as {@link ProviderSet} describes.
     */
    public static final String PROPERTY = "org.verbena.provider";

    /** The provider of RDMA devices. */
    private static final String NATIVE = "verbs";

    /** Which jar has which provider, for messages about one that is missing. */
    private static final Map<String, String> JARS = Map.of(
            NATIVE,
            "org.verbena:verbena-transport-verbs",
            "soft",
            "org.verbena:verbena-transport-soft",
            "shm",
            "org.verbena:verbena-transport-shm",
            "inprocess",
            "org.verbena:verbena-testing");

    /** Verbena's own providers, for jars that were packed into one by a tool that does not merge services files. */
    private static final Map<String, String> NAMES_OF_CLASSES = Map.of(
            "org.verbena.transport.verbs.VerbsProvider",
            NATIVE,
            "org.verbena.transport.soft.SoftProvider",
            "soft",
            "org.verbena.transport.shm.ShmProvider",
            "shm");

    private static final Logger LOG = LoggerFactory.getLogger(ProviderChoice.class);

    /** Any local address: a provider serves it if it has any device to run on. */
    private static final InetSocketAddress ANYWHERE = new InetSocketAddress(0);

    /** The names of providers whose choice has been logged; bounded by the number of providers. */
    private static final Set<String> LOGGED = ConcurrentHashMap.newKeySet();

    /**
     * The name that applies where the program names no provider.
     *
     * @return the value of {@link #PROPERTY}, or {@link #AUTO}
     */
    public static String configured() {
        String name = System.getProperty(PROPERTY, "").strip();
        return name.isEmpty() ? AUTO : name;
    }

    /**
     * Checks that a provider can work with this JVM and the Netty on the class path. Code whose classes could not be
     * loaded otherwise calls this first.
     *
     * @throws ProviderUnavailableException Netty is older than 4.2, or the JVM denies native access; the message says
     *     what to do
     */
    public static void checkRequirements() {
        String unmet = Requirements.unmet();
        if (unmet != null) {
            throw new ProviderUnavailableException(unmet);
        }
    }

    /**
     * Chooses among the providers of this process.
     *
     * @param name a provider's name, or {@link #AUTO}; of a text as {@link ProviderSet} describes, the first
     * @param address the address that {@link #AUTO} must serve: resolved, local or remote, or null for any
     * @return the choice; logged at INFO the first time that a provider is chosen
     * @throws ProviderUnavailableException the named provider cannot work here, or {@link #AUTO} found none
     */
    public static ProviderChoice choose(String name, @Nullable InetSocketAddress address) {
        if (ProviderSet.isSet(name)) {
            ProviderChoice first =
                    ProviderSet.choose(name, address, installed()).first();
            first.log();
            return first;
        }
        List<RdmaProvider> providers = installed();
        ProviderChoice choice = name.equals(AUTO) && address != null
                ? chooseForClient(address, providers)
                : choose(name, address, providers);
        choice.log();
        return choice;
    }

    /** Prefers providers that join the choice, where they reach a server; where not, the reason says so. */
    static ProviderChoice chooseForClient(InetSocketAddress remote, List<RdmaProvider> providers) {
        StringBuilder why = new StringBuilder();
        for (RdmaProvider provider : providers) {
            if (provider.joinsAuto() && provider.reaches(remote)) {
                return new ProviderChoice(provider, "chosen automatically, since a server of this host has it");
            }
            if (provider.joinsAuto() && provider.serves(remote)) {
                why.append("; ")
                        .append(provider.name())
                        .append(" reaches no server at ")
                        .append(remote);
            }
        }
        ProviderChoice usual = chooseAutomatically(remote, providers);
        return new ProviderChoice(usual.provider, usual.reason + why);
    }

    /**
     * A provider by its name, for programs that use several. Nothing is logged.
     *
     * @param name a provider's
     * @return the provider, which can work here
     * @throws ProviderUnavailableException it cannot, or there is none of this name
     */
    public static RdmaProvider find(String name) {
        return chooseByName(name, installed()).provider;
    }

    /** Once for each provider. */
    void log() {
        if (LOGGED.add(provider.name())) {
            LOG.info("RDMA provider {} ({}): {}", provider.name(), provider.description(), reason);
        }
    }

    /**
     * The providers of this process.
     *
     * @return in the order in which {@link #AUTO} asks them
     * @throws ProviderUnavailableException none could work, as {@link #checkRequirements} says
     */
    public static List<RdmaProvider> installed() {
        checkRequirements();
        Secrets.prepare();
        return Installed.PROVIDERS;
    }

    static ProviderChoice choose(String name, @Nullable InetSocketAddress address, List<RdmaProvider> providers) {
        return name.equals(AUTO) ? chooseAutomatically(address, providers) : chooseByName(name, providers);
    }

    private static ProviderChoice chooseByName(String name, List<RdmaProvider> providers) {
        for (RdmaProvider provider : providers) {
            if (provider.name().equals(name)) {
                Throwable cause = provider.unavailabilityCause();
                if (cause != null) {
                    throw new ProviderUnavailableException(
                            "the RDMA provider " + name + " was requested and cannot work here: " + message(cause),
                            cause);
                }
                return new ProviderChoice(provider, "requested by name");
            }
        }
        String jar = JARS.get(name);
        throw new ProviderUnavailableException("there is no RDMA provider " + name + "; there are " + names(providers)
                + ", auto and all. A provider is found when its jar is on the class path or the module path"
                + (jar == null ? "." : ": add " + jar + "."));
    }

    /**
     * Every provider that can work here and serves an address.
     *
     * @param address resolved, or null for any
     * @param providers in the order in which they are asked
     * @return one or more
     * @throws ProviderUnavailableException there is none
     */
    static List<ProviderChoice> allThatServe(@Nullable InetSocketAddress address, List<RdmaProvider> providers) {
        List<ProviderChoice> found = new ArrayList<>();
        ProviderChoice first = chooseAutomatically(address, providers); // which says why if there is none
        InetSocketAddress served = address == null ? ANYWHERE : address;
        for (RdmaProvider provider : providers) {
            if (provider.equals(first.provider)) {
                found.add(first);
            } else if (provider.unavailabilityCause() == null && provider.serves(served)) {
                found.add(new ProviderChoice(provider, "one of all that serve"));
            }
        }
        return found;
    }

    private static ProviderChoice chooseAutomatically(
            @Nullable InetSocketAddress address, List<RdmaProvider> providers) {
        InetSocketAddress served = address == null ? ANYWHERE : address;
        StringBuilder passed = new StringBuilder();
        for (RdmaProvider provider : providers) {
            Throwable cause = provider.unavailabilityCause();
            if (cause == null && provider.serves(served)) {
                return new ProviderChoice(
                        provider,
                        "chosen automatically, " + (passed.isEmpty() ? "as the first that serves" : "as" + passed)
                                + adviceOnDevices(providers));
            }
            passed.append(passed.isEmpty() ? " " : "; ").append(provider.name());
            if (cause != null) {
                passed.append(" cannot work here: ").append(message(cause));
            } else if (address == null) {
                passed.append(" has no device that is up");
            } else {
                passed.append(" does not serve ").append(address);
            }
        }
        throw new ProviderUnavailableException("no RDMA provider serves " + (address == null ? "this machine" : address)
                + ":" + (passed.isEmpty() ? " none is on the class path; add " + JARS.get("soft") : passed));
    }

    /**
     * Reports devices that stay unused because the native provider's jar is missing: without that jar nothing looks for
     * them.
     */
    private static String adviceOnDevices(List<RdmaProvider> providers) {
        return names(providers).contains(NATIVE) ? "" : "; to use RDMA devices, add " + JARS.get(NATIVE);
    }

    private static String message(Throwable cause) {
        String message = cause.getMessage();
        return message == null ? cause.toString() : message;
    }

    private static List<String> names(List<RdmaProvider> providers) {
        return providers.stream().map(RdmaProvider::name).toList();
    }

    /** One instance of each provider for the whole process, created on first use. */
    private static final class Installed {
        static final List<RdmaProvider> PROVIDERS = load();

        private static List<RdmaProvider> load() {
            String warning = Requirements.warning(Runtime.version());
            if (warning != null) {
                LOG.warn("{}", warning);
            }
            List<RdmaProvider> found =
                    load(ServiceLoader.load(RdmaProvider.class, ProviderChoice.class.getClassLoader()));
            if (found.isEmpty()) {
                // A container may load a program's jars apart from its libraries: ask the program's loader then.
                found = load(ServiceLoader.load(RdmaProvider.class));
            }
            for (String className : NAMES_OF_CLASSES.keySet()) {
                addUnlisted(className, found);
            }
            found.sort(Comparator.comparingInt(RdmaProvider::rank));
            return List.copyOf(found);
        }

        private static List<RdmaProvider> load(ServiceLoader<RdmaProvider> loader) {
            List<RdmaProvider> found = new ArrayList<>();
            for (Iterator<ServiceLoader.Provider<RdmaProvider>> all =
                            loader.stream().iterator();
                    all.hasNext(); ) {
                ServiceLoader.Provider<RdmaProvider> next = all.next();
                try {
                    found.add(next.get());
                } catch (ServiceConfigurationError failed) {
                    Throwable cause = failed.getCause();
                    found.add(unusable(next.type().getName(), cause == null ? failed : cause));
                }
            }
            return found;
        }

        private static RdmaProvider unusable(String className, Throwable cause) {
            String name = NAMES_OF_CLASSES.getOrDefault(className, className);
            LOG.warn("the RDMA provider {} cannot be used: {}", name, cause.toString());
            return new UnusableProvider(name, cause);
        }

        /** Adds a provider that is present although no services file names it. */
        private static void addUnlisted(String className, List<RdmaProvider> found) {
            String name = NAMES_OF_CLASSES.get(className);
            if (found.stream().anyMatch(provider -> provider.name().equals(name))) {
                return;
            }
            try {
                found.add(Class.forName(className)
                        .asSubclass(RdmaProvider.class)
                        .getDeclaredConstructor()
                        .newInstance());
            } catch (ClassNotFoundException absent) {
                LOG.trace("{} is not on the class path", className, absent);
            } catch (InvocationTargetException thrown) {
                Throwable cause = thrown.getCause();
                found.add(unusable(className, cause == null ? thrown : cause));
            } catch (ReflectiveOperationException | LinkageError | ClassCastException unusable) {
                LOG.debug("{} is on the class path but cannot be used", className, unusable);
            }
        }
    }
}
