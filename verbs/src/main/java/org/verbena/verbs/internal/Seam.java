package org.verbena.verbs.internal;

/**
 * A parameter of constructors that only the module {@code org.verbena.verbs.packet} may call: no other module reads
 * this package, so no other can name the argument.
 */
public final class Seam {
    /** The only one. */
    public static final Seam PACKET = new Seam();

    private Seam() {}
}
