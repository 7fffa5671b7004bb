package org.verbena.it.environment;

import org.verbena.cm.Cm;
import org.verbena.cm.EventChannel;
import org.verbena.verbs.Verbs;

/** The program that is run: what the bindings say for themselves, and what their first calls throw. */
public final class Bindings {
    private interface Call {
        Object make() throws Exception;
    }

    private Bindings() {}

    /** Prints a line for each call. */
    public static void main(String[] none) {
        print("verbs cause", Verbs::unavailabilityCause);
        print("cm cause", Cm::unavailabilityCause);
        print("verbs call", Verbs::devices);
        print("cm call", Cm::devices);
        print("channel", EventChannel::open);
    }

    private static void print(String name, Call call) {
        try {
            System.out.println(name + ": returned " + call.make());
        } catch (Throwable thrown) {
            System.out.println(name + ": threw " + thrown);
        }
    }
}
