/** What Verbena's module of raw packets shares with this one. Only that module reads this package. */
package org.verbena.verbs.internal;
